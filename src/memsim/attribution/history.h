/* SPDX-License-Identifier: Apache-2.0
 * The blocks of a GPU over a whole run, in a limited number, however long the
 * run was. Of steps that follow each other and are alike only the first is
 * kept. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_HISTORY_H
#define MEMSIM_MEMSIM_ATTRIBUTION_HISTORY_H

#include <limits.h>

#include "memsim/attribution/memory_curve.h"

#define HISTORY_BLOCKS 20000
#define HISTORY_RUNS   1000
#define HISTORY_BEFORE UINT_MAX /* the "step" before the first one */

/* A block's life. Times are the allocator's events on this GPU, counted from
 * 0, and nanoseconds since the trace's first record. */
struct history_block {
    uint64_t address, bytes, requested_bytes;
    uint64_t born, died; /* events; UINT64_MAX: alive at the end */
    uint64_t born_ns, died_ns;
    uint64_t operation, stack; /* ids of names; 0: not known */
    uint32_t module;           /* 0: none */
    uint8_t category;
};

/* Steps that are alike: with as many bytes requested when they began, the same
 * requests and frees by the same operators and modules in the same order. What
 * the allocator made of a request may differ a little. The first step is kept,
 * [begin, first_end). */
struct history_run {
    unsigned step, count;
    uint64_t begin, first_end, end; /* events */
    uint64_t begin_ns, first_end_ns, end_ns;
    uint64_t start_bytes; /* requested when it began */
    uint64_t hash;        /* of its requests and frees */
};

/* Zeroed, it is empty. */
struct history {
    struct history_block *blocks; /* in the order of their ends */
    size_t count, capacity;
    uint64_t least_bytes;     /* smaller ones are left out */
    uint64_t left_out;        /* so many */
    uint64_t requested_bytes; /* by all blocks at present */
    uint64_t peak_bytes; /* of allocated */
    uint64_t peak_event; /* when it was reached; of a step that is left out,
                            the same event of the step that is kept */
    struct history_run *runs; /* the last one has not ended */
    size_t run_count, run_capacity;
    struct memory_curve points; /* without the steps that are not kept */
    struct {
        size_t count; /* of blocks when the step began */
        uint64_t left_out, ordinal;
        bool rising;
    } mark;
};

/* STEP begins. */
void history_step(struct history *h, const struct moment *now, unsigned step);
/* The allocator's event NOW: B was allocated, or freed if BYTES is negative. */
void history_event(struct history *h, const struct moment *now,
                   const struct history_block *b, int64_t bytes);
/* Takes a block's whole life. */
void history_put(struct history *h, const struct history_block *b);
/* The run ends. */
void history_conclude(struct history *h, const struct moment *now);
/* The number of kept events before EVENT, which may be UINT64_MAX. */
uint64_t history_place(const struct history *h, uint64_t event);
void history_fini(struct history *h);

#endif
