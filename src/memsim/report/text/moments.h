/* SPDX-License-Identifier: Apache-2.0
 * Attribution over time for people, in 80 columns: memory by category as a
 * chart, the phases about the peak, and the modules that ever held most. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_MOMENTS_H
#define MEMSIM_MEMSIM_REPORT_TEXT_MOMENTS_H

#include <stdio.h>

#include "memsim/attribution/attribute.h"
#include "memsim/report/text/tree.h"

#define MOMENTS_TOP 10 /* modules, where not said otherwise */

/* Writes nothing where nothing was allocated. */
void moments_write(const struct attribution *attribution,
                   const struct tree_style *style, FILE *out);

#define MOMENT_WORDS 80 /* bytes */

/* When it was in the steps of A: "in step 2, backward", in TEXT, which is
 * returned. An EPISODE is named. */
const char *moment_words(const struct attribution *a, unsigned step,
                         enum trace_phase_kind phase, enum episode episode,
                         char text[MOMENT_WORDS]);

#endif
