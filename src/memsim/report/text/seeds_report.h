/* SPDX-License-Identifier: Apache-2.0
 * What runs with other seeds of --routing need, in words and as JSON. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_SEEDS_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_SEEDS_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result/result.h"

/* Nothing where R has no seeds. */
void seeds_text_write(const struct result *r, FILE *out);
void seeds_json_add(cJSON *root, const struct result *r);

/* R's verdict where the 95th percentile of its seeds does not fit. */
void seeds_judge(struct result *r);

#endif
