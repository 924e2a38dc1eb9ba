/* SPDX-License-Identifier: Apache-2.0
 * What a block at the peak is, in so many columns. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_THING_TEXT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_THING_TEXT_H

#include <stddef.h>

#include "memsim/attribution/peak.h"

#define THING_TEXT_BYTES 256

/* What T is and, where that is known and short, the line of the script, in
 * WIDTH columns, to OUT, which is returned. Both come from the script. A name
 * that is too long loses its category, then modules from its beginning, then
 * words of its operator: "exp_avg of ...mlp.down_proj.weight". */
const char *thing_text(const struct peak_thing *t, size_t width,
                       char out[THING_TEXT_BYTES]);

#endif
