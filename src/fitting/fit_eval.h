/* SPDX-License-Identifier: Apache-2.0
 * How far off prices are from times that they were not fitted to. */
#ifndef MEMSIM_FITTING_FIT_EVAL_H
#define MEMSIM_FITTING_FIT_EVAL_H

#include <stdio.h>

#include "fitting/ops.h"

struct cost_image;

/* Prices the rows of GPU in OPS by IMAGE and prints a line for each class of
 * work and file: rows, mean and median |error|, the median signed error, and
 * the share of the times inside the band. Returns how many rows there were. */
size_t fit_eval_print(const struct ops *ops, const char *gpu,
                      const struct cost_image *image,
                      const struct cost_gpu *limits, FILE *out);

#endif
