/* SPDX-License-Identifier: Apache-2.0
 * Where a series of residuals changes its course. */
#ifndef MEMSIM_COMMFIT_BREAKS_H
#define MEMSIM_COMMFIT_BREAKS_H

#include <stdint.h>

/* Splits COUNT values Y at increasing X > 0 (equal ones stay together) into at
 * most PIECES runs of at least MIN_SIZES different X each, so that lines in
 * log(X) through each leave the least squares. Writes where each run ends to
 * ENDS; returns their number, at least 1. */
uint32_t breaks_find(const double *x, const double *y, uint32_t count,
                     uint32_t pieces, uint32_t min_sizes, uint32_t *ends);

#endif
