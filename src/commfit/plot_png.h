/* SPDX-License-Identifier: Apache-2.0
 * A drawing as PNG, by rsvg-convert or inkscape. */
#ifndef MEMSIM_COMMFIT_PLOT_PNG_H
#define MEMSIM_COMMFIT_PLOT_PNG_H

#include <stddef.h>

struct err;

/* Writes LENGTH bytes of SVG as the PNG file PATH, which appears whole or not
 * at all. Returns 0 or -1. */
int plot_png_write(const char *svg, size_t length, const char *path,
                   struct err *err);

#endif
