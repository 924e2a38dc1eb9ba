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

/* A drawing in the making. */
struct plot_page {
    FILE *out; /* where it goes, as SVG */
    char *text;
    size_t length;
};

/* Opens PAGE for drawing; ends it and writes it to PATH, as SVG or PNG. Each
 * returns 0 or -1; what was begun must be ended. */
int plot_page_begin(struct plot_page *page, const char *path, struct err *err);
int plot_page_end(struct plot_page *page, const char *path, struct err *err);

/* Returns 0, or -1 where PATH is for a format that is not drawn. */
int plot_check(const char *path, struct err *err);

#endif
