/* SPDX-License-Identifier: Apache-2.0
 * An SVG page: texts and rectangles. Sizes are in pixels. */
#ifndef MEMSIM_COMMON_BASE_SVG_PAGE_H
#define MEMSIM_COMMON_BASE_SVG_PAGE_H

#include <stdio.h>

/* A white page of WIDTH x HEIGHT. */
void svg_begin(FILE *out, double width, double height);
void svg_end(FILE *out);

/* Text of the page; what XML would take for markup is escaped. */
void svg_text(FILE *out, double x, double y, int size, const char *anchor,
              const char *text);

/* Writes TEXT so that neither XML nor HTML takes it for markup. */
void svg_escape(FILE *out, const char *text);

void svg_rectangle(FILE *out, double x, double y, double width, double height,
                   const char *colour);

#endif
