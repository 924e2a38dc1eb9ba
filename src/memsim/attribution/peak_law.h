/* SPDX-License-Identifier: Apache-2.0
 * What a step's peak depends on: the length of its samples, where steps with
 * different lengths were recorded and the peaks lie on a line or a parabola.
 * Pure. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_PEAK_LAW_H
#define MEMSIM_MEMSIM_ATTRIBUTION_PEAK_LAW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/step_batch.h"

#define PEAK_LAW_POINTS 256 /* steps that are compared; later ones are not */

struct peak_law_points { /* zeroed: empty */
    uint64_t length[PEAK_LAW_POINTS], peak[PEAK_LAW_POINTS];
    uint64_t samples; /* of each step */
    unsigned count;
    bool unlike; /* steps have other numbers of samples */
    bool warm;   /* a step was left out: the optimizer makes its state */
};

/* A step with INPUT had PEAK_BYTES. What has no clear length is left out. */
void peak_law_add(struct peak_law_points *points,
                  const struct step_input *input, uint64_t peak_bytes);

/* peak = constant + linear n + square n^2 bytes, n the tokens of each sample */
struct peak_law {
    unsigned degree; /* 0: there is none; 1; 2 */
    double constant, linear, square;
    uint64_t samples, shortest, longest; /* that were recorded */
    unsigned steps;
};

struct peak_law peak_law_find(const struct peak_law_points *points);

/* The peak for samples of LENGTH tokens. */
uint64_t peak_law_at(const struct peak_law *law, uint64_t length);

#endif
