/* SPDX-License-Identifier: Apache-2.0
 * Finds what grows from step to step: blocks of which each step leaves some
 * behind, or a tensor that each step makes larger. Takes each block's
 * allocation and its end; uses memory in proportion to the kinds of blocks. A
 * kind is an operator in a module, at a place in the script where stacks were
 * recorded. Pure.
 *
 * A block is old once it has outlived the step after its own. What a step
 * leaves for the next one (its batch, its loss) never is, so it is no growth,
 * whatever its size. A kind grows if the number of its old blocks reaches new
 * heights, as often at the end of the recording as before:
 *
 *     old blocks     a leak  /      a cache   ____    lengths
 *                          /                 /               __  _
 *                        /                  /               _  __ _
 *     step             ------>             ------>         ------->
 *
 * A cache that has not reached its bound yet cannot be told from a leak. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_GROWTH_H
#define MEMSIM_MEMSIM_ATTRIBUTION_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/map.h"
#include "common/trace/trace.h"

/* So many steps have to be recorded before anything is found to grow. */
#define GROWTH_STEPS 6

struct growth_key {
    uint64_t operation, stack; /* ids of names; 0: not known */
    uint64_t module;           /* 0: none */
};

/* Where in the script blocks of a kind were allocated whose key does not say
 * so: stacks are taken of some blocks only. */
struct growth_place {
    uint64_t stack; /* id of a name */
    uint64_t live;  /* blocks ... */
    uint64_t kept;  /* ... when the last step began: a program's end frees all
                     */
    struct growth_place *next;
};

/* What a block has to remember. */
struct growth_mark {
    struct growth_kind *kind;
    struct growth_place *place; /* NULL: not known */
    unsigned born;              /* the step */
};

/* Bytes more with each step: on average, and between the extremes that the
 * recorded steps make likely. Zeros: it does not grow. */
struct growth_rate {
    uint64_t bytes, least, most;
};

/* Heights that a value reached for the first time. */
struct growth_rise {
    uint64_t high;                    /* the highest value so far */
    uint64_t first_bytes, last_bytes; /* at the first and the last rise */
    unsigned first, last;             /* their steps */
    unsigned times;
    unsigned longest; /* steps between two rises */
};

struct growth_level {
    uint64_t blocks, bytes;
};

/* A block's bytes; what was requested is what a tensor has. */
struct growth_bytes {
    uint64_t block, requested;
};

/* Requested bytes when steps begin. */
struct growth_size {
    struct growth_rise rise;
    uint64_t bytes;     /* when the last step began */
    uint64_t least, most; /* of its rises but the first, a step */
    uint64_t increment; /* of the last rise ... */
    uint64_t first_increment; /* ... and of the second one, at this step */
    unsigned first_step;
    unsigned uneven;    /* increments that differ by an eighth from the one
                           before */
    bool fell;
};

struct growth_kind {
    struct growth_key key;
    enum trace_category category; /* of the one that was filed last */
    struct growth_level live;
    struct growth_level young; /* of these, born in this step */
    struct growth_rise old;    /* the number of the others */
    uint64_t requested_bytes;  /* of those that live */
    struct growth_size size;
    struct growth_place *places;
    bool active;
    struct growth_kind *next; /* of the active ones */
};

enum growth_form {
    GROWTH_BLOCKS, /* each step leaves blocks behind */
    GROWTH_TENSOR, /* something is appended to a tensor */
    GROWTH_VARIED, /* blocks of other kinds in each step */
};

struct growth_found {
    struct growth_key key; /* GROWTH_VARIED: zeros */
    enum trace_category category;
    enum growth_form form;
    uint64_t step_bytes; /* so many more with each step, on average */
    uint64_t step_more;  /* ... and with each step so many more than that; then
                            step_bytes are those of the last step */
};

/* Calls between the begins of two steps, those of an evaluation or a
 * generation: how many there were, and what they leave behind. */
struct growth_calls {
    struct growth_size size; /* when they begin, since the step began: what
                                tensors have, since blocks of a tensor that
                                grows are larger by other remainders */
    unsigned count;
    struct growth_found found; /* of all steps, the most; step_bytes is that
                                  of a call, 0: nothing */
    unsigned found_count;      /* in the step where it was found */
    uint64_t found_bytes;      /* that tensors had at the last of them */
};

/* What is compared of the host's memory. */
enum growth_host {
    GROWTH_HOST_TENSORS,
    GROWTH_HOST_PINNED,
    GROWTH_HOST_HEAP, /* the C library's, without tensors */
    GROWTH_HOST_KINDS,
};

struct growth { /* zeroed: empty */
    struct map kinds;
    struct growth_kind *active; /* what the next step's begin may change */
    struct growth_level live;   /* every block */
    struct growth_size size;
    uint64_t peak_bytes;      /* of this step */
    uint64_t requested_bytes, peak_requested_bytes; /* the same as requested */
    struct growth_size peaks; /* of all */
    struct growth_size held;  /* segments with a block in them */
    struct growth_calls calls;
    uint64_t first_blocks; /* when the size rose first */
    unsigned step;         /* of all that began */
    unsigned start;        /* so many were none */
};

/* A block of KEY was allocated. */
struct growth_mark growth_take(struct growth *g, const struct growth_key *key,
                               const struct growth_bytes *bytes);
/* The block of MARK was freed. */
void growth_drop(struct growth *g, const struct growth_mark *mark,
                 const struct growth_bytes *bytes);
/* A step begins. */
void growth_step(struct growth *g);
/* What counted as steps until now were none: levels are compared from the next
 * step on. */
void growth_restart(struct growth *g);

/* HELD_BYTES of the segments that PyTorch has reserved cannot be given back
 * when a step begins: to be called before growth_step(). */
void growth_hold(struct growth *g, uint64_t held_bytes);

/* An outermost module is called without gradients, or in evaluation mode. */
void growth_call(struct growth *g);

/* The steps that were compared; below GROWTH_STEPS nothing is found. */
unsigned growth_steps(const struct growth *g);

/* Sets *FOUND, which the caller frees, to what grows, the fastest first.
 * Returns how many. */
size_t growth_find(const struct growth *g, struct growth_found **found);

/* So many bytes the peak of a step is above that of the one before, on average;
 * 0: it does not rise regularly. */
uint64_t growth_peak_bytes(const struct growth *g);

/* So many bytes more with each step lie in segments that cannot be given back,
 * while the blocks in them stay as many: fragments. 0: it does not grow. */
uint64_t growth_held_bytes(const struct growth *g);

/* So many more with each step, where what S measures grows regularly by the
 * same, or in half of the steps and never falls, and the least and the most of
 * a rise. STEPS: that were measured. */
struct growth_rate growth_size_rate(const struct growth_size *s,
                                    unsigned steps);

/* S is BYTES when the step STEP begins, from 1 on. */
void growth_size_measure(struct growth_size *s, unsigned step, uint64_t bytes);

void growth_fini(struct growth *g);

#endif
