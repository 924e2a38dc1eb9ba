/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/base/json_add.h"
#include "memsim/report/json/schema.h"
#include "memsim/report/text/compare_figures.h"
#include "memsim/report/text/compare_report.h"
#include "memsim/report/text/knee.h"

static void add_known(cJSON *run, const char *name, double value)
{
    if (value > 0)
        cJSON_AddNumberToObject(run, name, value);
}

static void add_run(cJSON *runs, const struct compare_report *r, size_t row,
                    const struct compare_catalogue *c)
{
    const struct result *result = r->rows[row].result;
    struct compare_figures f = compare_figures_of(result, &r->terms);
    const char *gpu = compare_smallest_gpu(c, &f);
    cJSON *run = json_add_object(runs);

    json_add_strings(run, "values", r->rows[row].cells, r->title_count);
    cJSON_AddBoolToObject(run, "whole", f.whole);
    if (result)
        cJSON_AddStringToObject(run, "verdict",
                                result_verdict_name(result->verdict));
    else
        cJSON_AddStringToObject(run, "why", r->rows[row].why);
    if (result)
        json_add_uint(run, "failed_allocations", result->refused);
    if (f.known) {
        json_add_bytes(run, "peak_allocated_bytes", f.allocated);
        json_add_bytes(run, "peak_reserved_bytes", f.reserved);
        json_add_bytes(run, "peak_used_bytes", f.used);
        json_add_bytes(run, "capacity_bytes", f.capacity);
    }
    if (f.step_ns)
        json_add_uint(run, "step_ns", f.step_ns);
    if (f.known)
        json_add_uint(run, "gpus", f.gpus);
    add_known(run, "tokens_per_second", f.tokens);
    add_known(run, "mfu", f.mfu);
    add_known(run, "gpu_hours", f.gpu_hours);
    add_known(run, "cost", f.cost);
    add_known(run, "efficiency", r->rows[row].efficiency);
    if (gpu)
        cJSON_AddStringToObject(run, "smallest_gpu", gpu);
}

void compare_report_json(const void *report, FILE *out)
{
    const struct compare_report *r = report;
    struct compare_catalogue c = compare_catalogue_load();
    cJSON *root = cJSON_CreateObject();

    schema_add_version(root, "compare_schema");
    json_add_strings(root, "names", r->titles, r->title_count);
    cJSON *runs = cJSON_AddArrayToObject(root, "runs");
    for (size_t i = 0; i < r->row_count; i++)
        add_run(runs, r, i, &c);
    free(c.list);
    if (r->delays)
        knee_json(root, r);
    schema_print("compare", root, out);
}
