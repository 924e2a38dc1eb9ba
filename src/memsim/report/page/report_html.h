/* SPDX-License-Identifier: Apache-2.0
 * The report as one page, which needs nothing else and no network. */
#ifndef MEMSIM_MEMSIM_REPORT_PAGE_REPORT_HTML_H
#define MEMSIM_MEMSIM_REPORT_PAGE_REPORT_HTML_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>

#include "common/base/err.h"
#include "memsim/result/result.h"

/* Is there a page? Sets ERR and returns -1 where this memsim was built without
 * the libraries that it is made of. */
int report_html_check(struct err *err);

/* Writes the page with ROOT, which report_json_make made of RESULT. What would
 * make the page too large to open is taken out of ROOT; each object that lost
 * something gets a member "left_out". */
void report_html_put(cJSON *root, const struct result *result, FILE *out);

#endif
