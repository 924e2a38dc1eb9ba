/* SPDX-License-Identifier: Apache-2.0
 * What grows from step to step, how long memory lasts, and what the likely
 * cause is. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_GROWTH_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_GROWTH_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result/result.h"

/* The GPU on which memory lasts the fewest steps; NULL: nothing grows. */
const struct result_device *growth_first(const struct result *result);

/* "it lasts 790 steps", after the verdict, of D and a job of JOB_STEPS (0: not
 * known). Returns OUT. */
const char *growth_verdict(const struct result_device *d, uint64_t job_steps,
                           char *out, size_t size);

/* Nothing where D's memory does not grow. */
void growth_text_write(const struct result_device *d, const char *dim,
                       const char *plain, FILE *out);
/* The same with each call of an evaluation. */
void growth_calls_write(const struct result_device *d, FILE *out);
/* Adds the object NAME with what each step leaves on the host. RATES: of the
 * GROWTH_HOST_KINDS kinds. */
cJSON *growth_json_add_host(cJSON *to, const char *name,
                            const struct growth_rate *rates);
/* Of all kinds together. */
struct growth_rate growth_host_sum(const struct growth_rate *rates);

void growth_json_add(cJSON *device, const struct result_device *d);

#endif
