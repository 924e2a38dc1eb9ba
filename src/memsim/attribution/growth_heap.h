/* SPDX-License-Identifier: Apache-2.0
 * Whether the C library's heap grows from step to step. Its level jitters, and
 * a garbage collection lowers it at once by what many steps add. So a heap
 * grows in one of two ways:
 *
 *     evenly      most steps' own rises are about alike
 *     unevenly    each third of the recording ends higher than it began, and
 *                 all of it is more than jitter and no single rise explains it
 *
 * Pure. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_GROWTH_HEAP_H
#define MEMSIM_MEMSIM_ATTRIBUTION_GROWTH_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "memsim/attribution/growth.h"

#define GROWTH_HEAP_LEVELS 256 /* that are kept: an even number */
#define GROWTH_HEAP_LOOKS  7   /* with fewer, nothing is known */
/* Bytes in all of the recording: less is jitter, but for even growth by
 * GROWTH_HEAP_EVEN with each step. 100 steps show 350 bytes a step. */
#define GROWTH_HEAP_MIN  UINT64_C(32768)
#define GROWTH_HEAP_EVEN 3072

struct growth_heap_level {
    uint64_t bytes;
    unsigned step; /* from 1 */
};

/* Where there are more levels than it holds, only every second one is kept, and
 * of those to come as many. */
struct growth_heap { /* zeroed: empty */
    struct growth_heap_level levels[GROWTH_HEAP_LEVELS];
    unsigned count;
    unsigned apart; /* levels from one that is kept to the next, less one */
    unsigned left;  /* ... that are left out before the next one */
    unsigned looks; /* steps that began with a level */
    uint64_t bytes; /* the last level */
    unsigned step;  /* the last that began with one, from 1; 0: none */
    unsigned changed; /* the last that began with another */
};

/* The heap has BYTES when STEP begins, from 1 on; 0: nobody looked. */
void growth_heap_measure(struct growth_heap *h, unsigned step, uint64_t bytes);

/* So many bytes more with each step. Where it grows evenly: the middle of the
 * rises, give or take how far those that are like it are apart: garbage that
 * Python has not collected yet makes the first steps' rises larger. What rises
 * in few steps (a table that is made larger) counts by the mean; falls do not.
 * Where it grows unevenly: the mean, and those of the slowest and the fastest
 * third. */
struct growth_rate growth_heap_rate(const struct growth_heap *h);

/* Whether there were looks enough to see growth. */
bool growth_heap_known(const struct growth_heap *h);

/* A heap that grows evenly, but by less with each step than this, gets no rate:
 * it cannot be told from jitter. 0: nothing is known. */
uint64_t growth_heap_least(const struct growth_heap *h);

#endif
