/* SPDX-License-Identifier: Apache-2.0
 * An axis of a job's ranks along which they differ: ranks of it are STRIDE
 * apart, and a rank's place on it is RANK / STRIDE % SIZE. Ranks with the same
 * places are alike, so that one of them can stand for the others. Pure. */
#ifndef MEMSIM_COMMON_TRACE_RANK_AXIS_H
#define MEMSIM_COMMON_TRACE_RANK_AXIS_H

#include <stdbool.h>
#include <stdint.h>

#define RANK_AXES 4

struct rank_axis {
    uint32_t stride, size;
    char kind[16];  /* RANK_AXIS_... of session.h */
    char place[64]; /* the script's line; "": not known */
};

/* What a rank exits with that reports an axis: memsim is to run the job again,
 * with the ranks that differ. */
#define RANK_AXIS_AGAIN 86

/* Whether A and B have the same places on COUNT AXES. */
bool rank_axis_alike(const struct rank_axis *axes, uint32_t count, uint32_t a,
                     uint32_t b);

/* The one of the RANKS that run, ascending, that stands for RANK: of those with
 * RANK's places the last one up to it, else the first; without any, the same of
 * all. */
uint32_t rank_axis_stand(const struct rank_axis *axes, uint32_t count,
                         const uint32_t *ranks, uint32_t rank_count,
                         uint32_t rank);

#endif
