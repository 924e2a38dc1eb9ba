/* SPDX-License-Identifier: Apache-2.0
 * What a step's peak depends on: the length or the size of its samples, how
 * many there are, or both, where steps that differ in it were recorded and the
 * peaks lie on a line or a parabola. Of several calls in a step, micro-batches,
 * the largest counts. Pure. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_PEAK_LAW_H
#define MEMSIM_MEMSIM_ATTRIBUTION_PEAK_LAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trace/step_batch.h"

#define PEAK_LAW_POINTS 256 /* steps that are compared; later ones are not */

/* What differs from step to step, while nothing else does. */
enum peak_law_dimension {
    PEAK_LAW_TOKEN,  /* tokens of each sample */
    PEAK_LAW_VALUE,  /* numbers of each sample: pixels, frames, features */
    PEAK_LAW_SAMPLE, /* samples of a step: nodes of a graph, points */
    PEAK_LAW_BATCH_TOKEN, /* tokens of all samples, with their padding */
    PEAK_LAW_BATCH_VALUE, /* numbers of all samples, likewise */
    PEAK_LAW_DIMENSIONS,
};

struct peak_law_points { /* zeroed: empty */
    uint64_t of[PEAK_LAW_DIMENSIONS][PEAK_LAW_POINTS]; /* 0: not known */
    uint64_t peak[PEAK_LAW_POINTS];
    unsigned count;
    bool warm; /* a step was left out: the optimizer makes its state */
};

/* A step with INPUT had PEAK_BYTES. What has no clear length is left out. */
void peak_law_add(struct peak_law_points *points,
                  const struct step_input *input, uint64_t peak_bytes);

/* peak = constant + linear n + square n^2 bytes */
struct peak_law {
    unsigned degree; /* 0: there is none; 1; 2 */
    enum peak_law_dimension dimension; /* what n is */
    double constant, linear, square;
    uint64_t samples; /* of each step; 0: they differ */
    uint64_t shortest, longest; /* n of the recorded steps */
    unsigned steps;
};

/* The size of INPUT in DIMENSION; 0: it has no clear one. */
uint64_t peak_law_size(const struct step_input *input,
                       enum peak_law_dimension dimension);

/* Its dimension is the one that differs from step to step, with a law or
 * without. */
struct peak_law peak_law_find(const struct peak_law_points *points);

/* "token", "value", "sample", "batch-token", "batch-value". */
const char *peak_law_dimension_name(enum peak_law_dimension dimension);

/* The dimension of that name, LENGTH bytes at TEXT; PEAK_LAW_DIMENSIONS: there
 * is none. */
enum peak_law_dimension peak_law_dimension_find(const char *text,
                                                size_t length);

/* The peak for n of LENGTH. */
uint64_t peak_law_at(const struct peak_law *law, uint64_t length);

#endif
