/* SPDX-License-Identifier: Apache-2.0
 * When the heap is looked at. A look walks over all that is free in it, so that
 * the pause after it is LOOK_SHARE times its cost. But growth can only be seen
 * where there are looks: one is due at the latest when LOOK_PART of the rounds
 * have begun without. So each of the first 16 rounds has one, and the later
 * half of any number of them at least 11; N rounds have no more than
 * 16 + 16 ln(N / 16) beyond the share. Pure. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_LOOK_PACE_H
#define MEMSIM_CAPTURE_CORE_TORCH_LOOK_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define LOOK_SHARE 100
#define LOOK_PART  16 /* one of so many */

struct look_pace { /* zeroed: no round yet */
    uint64_t next_ns; /* the pause ends */
    uint64_t rounds, looked; /* that began; until the last look */
};

/* A round begins at NOW_NS. Returns whether a look is due. */
static inline bool look_pace_round(struct look_pace *p, uint64_t now_ns)
{
    p->rounds++;
    return now_ns >= p->next_ns ||
           (p->rounds - p->looked) * LOOK_PART >= p->rounds;
}

/* A look ended at END_NS and took COST_NS of the processor: the time that the
 * thread waited for one, on a busy machine, is no cost. */
static inline void look_pace_looked(struct look_pace *p, uint64_t end_ns,
                                    uint64_t cost_ns)
{
    p->looked = p->rounds;
    p->next_ns = end_ns + LOOK_SHARE * cost_ns;
}

#endif
