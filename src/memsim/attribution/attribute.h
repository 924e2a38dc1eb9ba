/* SPDX-License-Identifier: Apache-2.0
 * Attributes memory: the blocks of a trace by module and category, at the peak
 * and over time. Reads the trace once. Uses memory proportional to the blocks
 * that are live at once and to the modules that were called. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_ATTRIBUTE_H
#define MEMSIM_MEMSIM_ATTRIBUTION_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trace/episode.h"
#include "common/trace/play.h"
#include "common/trace/step.h"
#include "memsim/attribution/growth.h"
#include "memsim/attribution/label.h"
#include "memsim/attribution/peak_law.h"

/* Bytes by enum trace_category. */
struct attribution_sums {
    uint64_t bytes[TRACE_CATEGORY_COUNT];
};

/* A module. The name "" is for blocks that no module allocated. */
struct attribution_module {
    char *name;
    uint64_t calls;
    uint64_t bytes_at_peak;  /* its own and its submodules' */
    uint64_t own_peak_bytes; /* the highest value of those at any time */
    uint64_t self_bytes;     /* at the peak, without its submodules */
    struct attribution_sums self;
    size_t parent; /* index in the array, SIZE_MAX: none */
};

struct attribution_phase {
    unsigned step; /* 0, 1, ...: how many optimizer steps came before */
    enum trace_phase_kind phase;
    uint64_t start_ns, end_ns; /* since the trace's first record */
    uint64_t peak_bytes;
    struct attribution_sums end; /* allocated bytes when it ended */
    uint64_t *module_bytes; /* bytes of each module with its submodules then,
                               by its index; NULL: not kept */
};

struct attribution_point {
    uint64_t time_ns;
    uint64_t events; /* of the allocator before it */
    uint64_t reserved_bytes;
    struct attribution_sums sums;
};

struct attribution_block {
    uint64_t address, bytes;
    bool allocated; /* false: a gap */
    size_t module;  /* index in the modules, SIZE_MAX: none */
    enum trace_category category;
    char *operation; /* NULL: not known */
    char *stack;     /* of Python, the innermost frame first, a line each:
                        "/a/b.py:3 forward"; NULL: not recorded */
    char *shape; /* "float32 8x1024x768", of the tensor that it was made
                    for; NULL: not known */
    char *name;  /* in its module, "weight", or of an optimizer's state
                    "exp_avg of weight"; NULL: not known */
    char *label;
};

struct attribution_segment {
    uint64_t address, bytes, stream;
    uint64_t pool[2];
    size_t first, count; /* of its blocks, by address, without a hole */
};

#define ATTRIBUTION_BEGINS 17 /* so many steps' begins are kept */

/* What grows from step to step; `growth.h` has the rules. */
struct attribution_growth {
    char *operation; /* NULL: not known */
    char *stack;     /* likewise */
    size_t module;   /* index in the modules, SIZE_MAX: none */
    enum trace_category category;
    enum growth_form form;
    uint64_t step_bytes; /* so many more with each step */
    uint64_t step_more;  /* and with each step so many more than that */
};

struct history;

/* The blocks over the run, with the names that they refer to: a block's
 * `operation` and `stack` are 1 + a place in `texts` or 0, its `module` 1 + an
 * index in the modules or 0. */
struct attribution_history {
    struct history *history;
    char **texts;
    size_t text_count;
    struct attribution_point *points;
    size_t point_count;
};

/* One GPU as one process saw it. */
/* A request that was refused: where the program was. */
struct attribution_oom {
    char *module;
    unsigned step;
    enum trace_phase_kind phase;
    enum episode episode;
};

struct attribution {
    struct attribution_sums at_peak;
    uint64_t peak_ns;
    unsigned peak_step;
    enum trace_phase_kind peak_phase;
    enum episode peak_episode;
    struct attribution_module *modules; /* parents before their children */
    size_t module_count;
    struct attribution_phase *phases;
    size_t phase_count, phases_dropped;
    struct attribution_point *points;
    size_t point_count;
    uint64_t point_bytes; /* smaller rises and falls are left out */
    struct attribution_segment *segments;
    size_t segment_count;
    struct attribution_block *blocks;
    size_t block_count;
    struct attribution_oom *ooms; /* one for each that PyTorch refused */
    size_t oom_count;
    struct attribution_history lives;
    struct attribution_growth *growth; /* the fastest first */
    size_t growth_count;
    struct attribution_growth calls_growth; /* with each call between two steps;
                                               step_bytes 0: nothing */
    unsigned calls;        /* of the step where it was found */
    uint64_t calls_bytes;  /* that were live then */
    uint64_t growth_peak_bytes; /* a step's peak above the one before; 0: not
                                   regularly */
    uint64_t growth_held_bytes; /* lost to fragments with each step */
    struct growth_rate host_growth[GROWTH_HOST_KINDS]; /* of the process */
    unsigned heap_looks; /* at its C library's heap, when steps began */
    bool heap_unknown;   /* they are too few to tell whether it grows */
    uint64_t heap_least; /* growth by less a step would not be seen */
    unsigned growth_steps; /* compared; 0: the trace has no steps */
    enum step_rule growth_rule; /* what these steps are */
    struct peak_law law; /* of a step's peak */
    uint64_t begins[ATTRIBUTION_BEGINS]; /* the records at which the last of
                                            these begin */
    uint64_t sizes[ATTRIBUTION_BEGINS]; /* of the input of each of these steps,
                                           in law.dimension; 0: not known */
    size_t begin_count;
};

/* "parameter", "forward", ...: the names in the JSON. */
const char *attribution_category_name(enum trace_category category);
const char *attribution_phase_name(enum trace_phase_kind phase);

uint64_t attribution_sum(const struct attribution_sums *sums);

struct attribute *attribute_create(void);
void attribute_destroy(struct attribute *a);

/* Takes the trace's next record, of any kind, from trace_play. */
void attribute_take(struct attribute *a, const struct trace_item *item,
                    const struct trace_now *now);

/* Sets the label of the first work that used the block at ADDRESS. */
void attribute_label(struct attribute *a, uint64_t address,
                     const struct label *label);

/* The result for DEVICE, in the process's numbering; NULL if nothing was
 * allocated, or if the trace has no PHASE records. The caller passes it to
 * attribution_destroy. */
struct attribution *attribute_conclude(struct attribute *a, unsigned device);
void attribution_destroy(struct attribution *attribution);

#endif
