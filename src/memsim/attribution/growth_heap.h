/* SPDX-License-Identifier: Apache-2.0
 * Whether the C library's heap grows from step to step. Its level jitters, and
 * a garbage collection lowers it at once by what many steps add, so that each
 * step's own rise is looked at: most of them have to be about alike. Pure. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_GROWTH_HEAP_H
#define MEMSIM_MEMSIM_ATTRIBUTION_GROWTH_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "memsim/attribution/growth.h"

#define GROWTH_HEAP_RISES 256 /* that are compared; later ones are not */
#define GROWTH_HEAP_MIN   3072 /* bytes a step: less is jitter */
#define GROWTH_HEAP_LOOKS 7    /* with fewer, nothing is known */

struct growth_heap { /* zeroed: empty */
    int64_t rises[GROWTH_HEAP_RISES];
    unsigned count;
    unsigned looks; /* steps that began with a level */
    uint64_t bytes; /* at the last step that had another level */
    unsigned step;  /* that one, from 1; 0: none */
};

/* The heap has BYTES when STEP begins, from 1 on; 0: nobody looked. */
void growth_heap_measure(struct growth_heap *h, unsigned step, uint64_t bytes);

/* So many bytes more with each step: the middle of the rises, give or take how
 * far those that are like it are apart: garbage that Python has not collected
 * yet makes the first steps' rises larger. What rises in few steps (a table
 * that is made larger) counts by the mean; falls do not. */
struct growth_rate growth_heap_rate(const struct growth_heap *h);

/* Whether there were looks enough to see growth. */
bool growth_heap_known(const struct growth_heap *h);

#endif
