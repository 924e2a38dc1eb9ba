/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/text/gpu_table.h"

#include "common/base/json_add.h"
#include "memsim/report/json/schema.h"

static void add_row(cJSON *list, const struct gpu_table *t,
                    const struct gpu_row *row)
{
    cJSON *to = json_add_object(list);
    const char *rate =
        row->rate.tokens ? "tokens_per_second" : "samples_per_second";

    cJSON_AddStringToObject(to, "name", row->gpu.name);
    cJSON_AddStringToObject(to, "device_name", row->gpu.device_name);
    json_add_bytes(to, "memory_bytes", row->gpu.memory_bytes);
    cJSON_AddStringToObject(to, "verdict", result_verdict_name(row->verdict));
    json_add_bytes(to, "peak_used_bytes", row->used_bytes);
    json_add_bytes(to, "headroom_bytes", row->headroom_bytes);
    if (row->lasts_steps)
        json_add_uint(to, "lasts_least_steps", row->lasts_steps);
    cJSON_AddBoolToObject(to, "kernels_differ", row->kernels_differ);
    if (row->step_ns) {
        json_add_uint(to, "step_ns", row->step_ns);
        json_add_uint(to, "low_ns", row->low_ns);
        json_add_uint(to, "high_ns", row->high_ns);
        cJSON_AddStringToObject(to, "basis", cost_basis_name(row->basis));
        cJSON_AddBoolToObject(to, "waits_for_cpu", row->waits_for_cpu);
    }
    if (row->rate.per_second > 0)
        cJSON_AddNumberToObject(to, rate, row->rate.per_second);
    if (row->price > 0)
        cJSON_AddNumberToObject(to, "price_per_hour", row->price);
    if (row->price > 0 && row->step_ns)
        cJSON_AddNumberToObject(to, "price_per_step",
                                gpu_row_step_price(t, row));
}

void gpu_table_json(const void *table, FILE *out)
{
    const struct gpu_table *t = table;
    cJSON *root = cJSON_CreateObject();
    size_t words = 0;

    while (t->command[words])
        words++;
    schema_add_version(root, "schema");
    cJSON_AddNumberToObject(root, "exit_status", t->exit_status);
    json_add_strings(root, "command", t->command, words);
    json_add_uint(root, "job_gpus", t->gpus);
    json_add_uint(root, "without_code", t->without_code);
    json_add_uint(root, "without_price", t->without_price);
    json_add_uint(root, "over_budget", t->over_budget);
    cJSON *list = cJSON_AddArrayToObject(root, "gpus");
    for (size_t i = 0; i < t->count; i++)
        add_row(list, t, &t->rows[i]);
    schema_print("replay_gpus", root, out);
}
