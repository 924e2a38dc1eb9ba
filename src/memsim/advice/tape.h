/* SPDX-License-Identifier: Apache-2.0
 * The allocator calls of a trace in memory, each with what the trace says of
 * its block, so that they can be changed and played again. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_H

#include "common/trace/play.h"
#include "memsim/attribution/module_table.h"
#include "memsim/replay/replay.h"

enum tape_kind {
    TAPE_CALL,  /* of the allocator, or of the device by others */
    TAPE_ENTER, /* a module is called */
    TAPE_LEAVE,
    TAPE_PHASE,
    TAPE_ZERO, /* a kernel fills memory outside of backward and the optimizer */
};

/* What a block turns out to hold. */
enum tape_holds {
    TAPE_PARAMETER = 1,
    TAPE_OWNED = 2,      /* something else that a module or optimizer keeps */
    TAPE_FP32_STATE = 4, /* of an optimizer */
    TAPE_EXP_AVG = 8,    /* the first of an Adam's states for a parameter */
    TAPE_STEP = 16, /* allocated in a step of an optimizer that can be fused */
    TAPE_LOSS = 32,      /* what a cross entropy makes of its logits */
    TAPE_GRADIENT = 64,  /* of a parameter */
    TAPE_STATE = 128,    /* of an optimizer, of any type */
};

/* Who took a block. */
enum tape_maker {
    TAPE_CAST = 1,    /* a copy to another type */
    TAPE_BUCKET = 2,  /* DistributedDataParallel */
    TAPE_SHARDED = 4, /* FullyShardedDataParallel or fully_shard */
};

struct tape_item {
    struct replay_op op; /* index and time_ns are set in all kinds */
    uint32_t module;     /* entered or left, or at work for the block */
    uint32_t output_of;  /* the outermost module of a list that returns it */
    uint32_t input_of;   /* the last one that gets it */
    uint8_t kind;        /* enum tape_kind */
    uint8_t phase; /* enum trace_phase_kind, that begins or of the block */
    uint8_t holds;       /* enum tape_holds */
    uint8_t maker;       /* enum tape_maker */
    bool idle;           /* TAPE_ENTER: of a model in evaluation, and gradients
                            are recorded */
    uint32_t owner;      /* of a gradient: the module that has the parameter */
    uint32_t last_dim;   /* of the tensor that the block was made for */
    uint64_t elements;   /* of that tensor; 0: not known. TAPE_ZERO: of what is
                            filled; 0: of lists of tensors */
};

struct tape {
    const char *name; /* of the trace, in messages; borrowed */
    struct tape_item *items;
    size_t count, capacity;
    struct module_table *modules;
    bool borrows_modules; /* they are another tape's */
    bool cut;             /* the trace goes on */
    size_t at;            /* of the source */
    struct replay_source source;
};

/* No item. */
#define TAPE_NONE UINT32_MAX

static inline bool tape_item_is_taken(const struct tape_item *item)
{
    return item->kind == TAPE_CALL && item->op.kind == REPLAY_ALLOC;
}

static inline bool tape_item_is_freed(const struct tape_item *item)
{
    return item->kind == TAPE_CALL && item->op.kind == REPLAY_FREE;
}

/* How many items a tape has at most, of some 150 bytes. */
#define TAPE_ITEMS 1000000

/* What a pass over a trace says that its replay does not. */
struct tape_notes;
struct tape_notes *tape_notes_create(size_t limit); /* of the tape's items */
struct trace_listener tape_notes_listener(struct tape_notes *notes);
void tape_notes_destroy(struct tape_notes *notes); /* NULL is fine */

/* Makes *TAPE of NOTES, which are used up, and of SOURCE, which plays the same
 * trace. Returns 0, or -1 with nothing to free. */
int tape_make(struct tape *tape, struct tape_notes *notes,
              const struct replay_source *source, struct err *err);

/* The same with a pass of its own over the trace PATH, for at most LIMIT
 * items. */
int tape_read(struct tape *tape, const char *path,
              const struct replay_source *source, size_t limit,
              struct err *err);
void tape_fini(struct tape *tape);

/* An empty tape with TAPE's modules, which must outlive it. */
void tape_init_like(struct tape *tape, const struct tape *like);
void tape_add(struct tape *tape, const struct tape_item *item);

/* Adds a call for the block that TAKEN took, at the time of AT and under the
 * name ADDRESS. */
void tape_add_call(struct tape *tape, const struct tape_item *taken,
                   const struct tape_item *at, enum replay_kind kind,
                   uint64_t address);

/* By item: of one that takes a block the one that frees it, of one that frees
 * it or completes that the one that took it; else TAPE_NONE. The caller frees
 * it. */
uint32_t *tape_pairs(const struct tape *tape);

/* TAPE as a recording; it must not move. */
const struct replay_source *tape_source(struct tape *tape);

#endif
