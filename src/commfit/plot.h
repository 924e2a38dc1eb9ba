/* SPDX-License-Identifier: Apache-2.0
 * One picture of a fit. */
#ifndef MEMSIM_COMMFIT_PLOT_H
#define MEMSIM_COMMFIT_PLOT_H

#include "commfit/score.h"

/* Draws, for each collective and width, time and bus bandwidth against size
 * (points measured, lines fitted, extrapolation shaded) and what was left when
 * sizes were held out; then the link levels. Returns 0 or -1. */
int plot_write(const struct fit *fit, const struct series_set *set,
               const struct scores *scores, const char *path, struct err *err);

/* Returns 0, or -1 where PATH is for a format that is not drawn. */
int plot_check(const char *path, struct err *err);

#endif
