/* SPDX-License-Identifier: Apache-2.0
 * Just enough SVG for plots: panels with axes, points and lines. */
#ifndef MEMSIM_COMMON_BASE_SVG_PLOT_H
#define MEMSIM_COMMON_BASE_SVG_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/svg_page.h"

enum svg_unit {
    SVG_PLAIN,
    SVG_TWOS,  /* ticks at powers of 2 */
    SVG_BYTES, /* ticks at powers of 2, as sizes */
    SVG_US,    /* as times */
};

struct svg_axis {
    double low, high; /* low < high; above 0 where LOG */
    bool log;
    enum svg_unit unit; /* of the numbers at the ticks */
    const char *label;
};

/* A panel on the page; X and Y are its upper left corner, in pixels. */
struct svg_panel {
    FILE *out;
    double x, y, width, height;
    struct svg_axis across, up;
    const char *title;
};

/* Draws frame, ticks and labels. */
void svg_panel_draw(const struct svg_panel *p);

/* Greys the part of P between two values of its across axis. */
void svg_shade(const struct svg_panel *p, double from, double to);

/* A point of P in one of 6 shapes, SHAPE counting around; one above or below
 * the axis lies on its edge. */
void svg_point(const struct svg_panel *p, double across, double up,
               const char *colour, uint32_t shape, bool hollow);

/* The shape alone, at pixels of the page. */
void svg_shape(FILE *out, double x, double y, const char *colour,
               uint32_t shape, bool hollow);

/* A line through COUNT points; parts outside P are cut off. */
void svg_line(const struct svg_panel *p, const double *across, const double *up,
              uint32_t count, const char *colour, bool dashed);

#endif
