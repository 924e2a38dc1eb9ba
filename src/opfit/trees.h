/* SPDX-License-Identifier: Apache-2.0
 * Growing ensembles of regression trees: random forests (the mean of deep
 * trees) and boosted trees (each shallow tree fits what the ones before it left
 * over). Inputs are put into at most 256 bins. Seeded: the same data and
 * options give the same bits. */
#ifndef MEMSIM_OPFIT_TREES_H
#define MEMSIM_OPFIT_TREES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/cost/cost_image.h"

struct trees_data {
    size_t rows;
    unsigned features;
    const float *x;  /* rows x features */
    const double *y; /* ln(time / roofline) */
    const double *weight;
};

struct trees_options {
    unsigned trees;
    unsigned depth;
    double leaf_weight;   /* the least that a leaf holds */
    double ridge;         /* weight of a prior at 0 in each leaf */
    double rate;          /* of learning; ignored for a forest */
    double row_share;     /* of the rows, drawn for each tree */
    double feature_share; /* of the inputs, drawn for each split */
    bool forest;
    uint64_t seed;
};

/* Grows an ensemble over LINE; the caller frees the state, of *SIZE bytes,
 * which cost_trees_ns() evaluates. */
struct cost_trees *trees_grow(const struct trees_data *data,
                              const struct trees_options *options,
                              const struct cost_roofline *line, size_t *size);

#endif
