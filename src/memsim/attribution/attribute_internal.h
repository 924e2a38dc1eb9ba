/* SPDX-License-Identifier: Apache-2.0
 * Declarations that the files of attribution share. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_ATTRIBUTE_INTERNAL_H
#define MEMSIM_MEMSIM_ATTRIBUTION_ATTRIBUTE_INTERNAL_H

#include "common/base/map.h"
#include "common/trace/session.h"
#include "common/trace/step.h"
#include "memsim/attribution/attribute.h"
#include "memsim/attribution/growth.h"
#include "memsim/attribution/growth_heap.h"
#include "memsim/attribution/history.h"
#include "memsim/attribution/module_table.h"
#include "memsim/attribution/peak_law.h"
#include "memsim/attribution/memory_curve.h"

/* --- modules: attribute_module.c ------------------------------------------ */

/* The modules' bytes on one GPU, by module number. */
struct holdings {
    struct holding {
        uint64_t bytes, peak_bytes; /* submodules included */
        uint64_t self_bytes;
    } * rows;
    size_t count;
};

/* Adds BYTES, which may be negative, to ID and all its parents. */
void holdings_add(struct holdings *h, const struct module_table *t, uint32_t id,
                  int64_t bytes);
/* Moves ID's bytes from OLD_PARENT to its present parent. */
void holdings_move(struct holdings *h, const struct module_table *t,
                   uint32_t id, uint32_t old_parent);
void holdings_fini(struct holdings *h);

/* --- phases: attribute_phase.c ---------------------------------------------
 */

#define PHASES_MAX  1000
#define PHASES_DROP 100 /* dropped at once, from the middle */

/* The modules' bytes are kept for the first and the last HELD_PHASES phases,
 * and for the phase between them that ended with most. With many modules they
 * are kept for fewer phases: at most HELD_MODULES numbers at either end. */
#define HELD_PHASES  20
#define HELD_MODULES (4u << 20)

/* Each module's bytes without its submodules' at a phase's end, by number. */
struct holds {
    uint64_t *bytes; /* NULL: not kept */
    size_t count;
};

struct phase_list {
    struct phase_row {
        struct attribution_phase told;
        uint64_t end_ordinal;
        struct holds held;
        bool largest; /* of those in the middle */
    } * rows;         /* the last one has not ended */
    size_t count, dropped;
};

/* The present state: the allocated bytes, and the modules' part of them. */
struct memory_now {
    const struct attribution_sums *current;
    const struct holdings *holdings;
};

/* PHASE of STEP begins now. */
void phase_list_begin(struct phase_list *l, const struct moment *now,
                      enum trace_phase_kind phase, unsigned step,
                      const struct memory_now *memory);
void phase_list_peak(struct phase_list *l, uint64_t allocated_bytes);
void phase_list_refile(struct phase_list *l, uint64_t born,
                       enum trace_category from, enum trace_category to,
                       uint64_t bytes);
/* Moves BYTES, allocated at the record BORN, to another module. */
void phase_list_move(struct phase_list *l, uint64_t born, uint32_t from,
                     uint32_t to, uint64_t bytes);
/* *TO must have its modules; PLACES are 1 + their indices, by number. */
void phase_list_conclude(struct phase_list *l, const struct moment *now,
                         const struct memory_now *memory, const size_t *places,
                         struct attribution *to);
void phase_list_fini(struct phase_list *l);

/* --- segments: attribute_segment.c -----------------------------------------
 */

struct segment_row {
    uint64_t address, bytes, stream, pool[2];
    uint64_t born;
    struct segment_row *next_gone;
};

/* A GPU's segments, at present and at the peak. */
struct segment_table {
    struct map live;          /* struct segment_row by address */
    struct segment_row *gone; /* freed since the peak */
    bool expandable;          /* something was mapped */
};

void segment_table_take(struct segment_table *t, const struct trace_item *item,
                        uint64_t ordinal, uint64_t peak_ordinal);
/* Starts a new peak: segments freed before it are not part of it. */
void segment_table_peak(struct segment_table *t);
/* Writes the segments of the peak, by address. Neighbours that were mapped one
 * after the other become one segment. */
void segment_table_conclude(struct segment_table *t, uint64_t peak_ordinal,
                            struct attribution *to);
/* The bytes of the segments that have one of BLOCKS, struct block by
 * address, of DEVICE: PyTorch cannot give them back. */
uint64_t segment_table_held(const struct segment_table *t,
                            const struct map *blocks, unsigned device);
void segment_table_fini(struct segment_table *t);

/* --- blocks: attribute.c ---------------------------------------------------
 */

struct block {
    uint64_t address, bytes, requested_bytes;
    uint64_t born;          /* the record's ordinal */
    uint64_t born_event, born_ns;
    uint64_t operation;     /* id of a name */
    uint64_t stack;         /* likewise; 0: not recorded */
    uint64_t shape, name;   /* likewise; 0: not known */
    uint64_t phases_before; /* phases that had begun */
    struct label label;
    struct growth_mark growth;
    uint32_t module;
    uint8_t device;
    uint8_t phase, category;
    struct block *next, **previous; /* of those whose category is open */
    struct block *next_gone;
};

struct card_oom {
    uint32_t module;
    unsigned step;
    enum trace_phase_kind phase;
    struct episode_moment episode;
};

/* One GPU. */
struct card_use {
    struct moment now;
    struct moment peak;
    unsigned peak_step;
    enum trace_phase_kind peak_phase;
    struct episode_moment peak_episode;
    struct attribution_sums current;
    struct holdings holdings;
    struct memory_curve curve;
    struct history history;
    struct growth growth;
    struct peak_law_points law;
    struct phase_list phases;
    struct segment_table segments;
    struct block *gone; /* freed since the peak */
    struct card_oom *ooms;
    size_t oom_count, oom_capacity;
};

/* P's life, which has not ended. */
struct history_block block_life(const struct block *p);

#define ATTRIBUTE_DEVICES SESSION_DEVICES

/* The state of an attribution; attribute_result.c makes the result. */
struct attribute {
    struct card_use cards[ATTRIBUTE_DEVICES];
    struct map blocks; /* struct block by address: live */
    struct module_table modules;
    const struct trace_names *names;  /* of the pass */
    struct block *forward, *stepping; /* their category is decided at backward
                                         or at the step's end, if alive */
    bool told;                        /* the trace has PHASE records */
    uint64_t ordinal, start_ns;
    uint64_t phase_count;
    enum trace_phase_kind phase;
    struct step_tracker steps;
    struct step_calls calls;
    struct episode_tracker episodes;
    struct step_batch batch; /* of this step */
    enum step_rule rule; /* of the steps between which growth is compared */
    uint64_t begins[ATTRIBUTION_BEGINS]; /* their first records, in a ring */
    struct step_input inputs[ATTRIBUTION_BEGINS]; /* of the step that begins
                                                     there, when it has ended */
    size_t begin_count;
    struct trace_host_level host; /* the last one; its heap is the last that
                                     was looked at since the step began, 0:
                                     none */
    struct growth_size host_growth[GROWTH_HOST_HEAP];
    struct growth_heap heap_growth;
    unsigned step; /* of them that began last; HISTORY_BEFORE: none */
};

#endif
