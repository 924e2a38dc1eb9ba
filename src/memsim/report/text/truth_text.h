/* SPDX-License-Identifier: Apache-2.0
 * A predicted run beside the same script on a real GPU, for people. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_TRUTH_TEXT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_TRUTH_TEXT_H

#include <stdio.h>

#include "memsim/result/result.h"
#include "memsim/time/truth_side.h"

struct truth_half {
    const char *name;            /* of its directory */
    const struct result *result; /* whose first rank has a device */
    struct truth_side side;
};

struct truth {
    struct truth_half estimate, run;
};

/* Both verdicts, peaks and steps; where the allocator's events part;
 * workspaces of another size; device times by family and by kernel, the largest
 * differences first. */
void truth_text_write(const struct truth *t, FILE *out);

#endif
