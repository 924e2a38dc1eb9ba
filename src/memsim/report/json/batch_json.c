/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/json_add.h"
#include "memsim/report/json/schema.h"
#include "memsim/report/text/batch_report.h"

static void add_outcome(cJSON *array, const struct batch_outcome *o)
{
    cJSON *to = json_add_object(array);

    json_add_uint(to, "batch", o->batch);
    cJSON_AddStringToObject(to, "verdict", batch_verdict_name(o->verdict));
    cJSON_AddNumberToObject(to, "command_status", o->status);
    json_add_bytes(to, "peak_used_bytes", o->peak_used_bytes);
    json_add_bytes(to, "peak_reserved_bytes", o->peak_reserved_bytes);
    json_add_bytes(to, "peak_allocated_bytes", o->peak_allocated_bytes);
    if (o->step_ns) {
        json_add_uint(to, "step_ns", o->step_ns);
        json_add_uint(to, "low_ns", o->low_ns);
        json_add_uint(to, "high_ns", o->high_ns);
        cJSON_AddBoolToObject(to, "waits_for_cpu", o->waits_for_cpu);
    }
    if (o->rate > 0)
        cJSON_AddNumberToObject(
            to, o->rate_is_tokens ? "tokens_per_second" : "samples_per_second",
            o->rate);
    if (o->lasts_steps)
        json_add_uint(to, "lasts_least_steps", o->lasts_steps);
    cJSON_AddNumberToObject(to, "seconds", o->seconds);
    cJSON_AddBoolToObject(to, "cached", o->cached);
}

static void add_batch(cJSON *to, const char *name, uint64_t batch)
{
    if (batch)
        json_add_bytes(to, name, batch);
    else
        cJSON_AddNullToObject(to, name);
}

static const char *verdict_of(const struct batch_report *r)
{
    for (size_t i = 0; i < r->outcome_count; i++)
        if (batch_verdict_ends(r->outcomes[i].verdict))
            return "failed";
    if (r->signal)
        return "interrupted";
    return batch_search_largest(&r->search) ? "fits" : "oom";
}

static void add_range(cJSON *root, const struct batch_search *s)
{
    add_batch(root, "largest_batch", batch_search_largest(s));
    add_batch(root, "smallest_too_large", batch_search_limit(s));
    json_add_uint(root, "from", s->from);
    json_add_uint(root, "to", s->to);
    json_add_uint(root, "multiple_of", s->multiple);
    cJSON_AddBoolToObject(root, "uneven", batch_search_is_uneven(s));
}

static cJSON *json_make(const struct batch_report *r)
{
    cJSON *root = cJSON_CreateObject();
    size_t arguments = 0;

    while (r->result.command[arguments])
        arguments++;
    schema_add_version(root, "schema");
    cJSON_AddStringToObject(root, "verdict", verdict_of(r));
    cJSON_AddNumberToObject(root, "exit_status", r->result.exit_status);
    json_add_strings(root, "command", r->result.command, arguments);
    cJSON *gpu = cJSON_AddObjectToObject(root, "gpu");
    cJSON_AddStringToObject(gpu, "name", r->result.gpu.name);
    cJSON_AddStringToObject(gpu, "device_name", r->result.gpu.device_name);
    json_add_bytes(gpu, "memory_bytes", r->result.gpu.memory_bytes);
    add_range(root, &r->search);
    add_batch(root, "best_batch", batch_best(r) ? batch_best(r)->batch : 0);
    if (r->unneeded_runs)
        json_add_uint(root, "unneeded_runs", r->unneeded_runs);
    cJSON *tries = cJSON_AddArrayToObject(root, "tries");
    for (size_t i = 0; i < r->outcome_count; i++)
        add_outcome(tries, &r->outcomes[i]);
    return root;
}

static void json_write(const void *report, const struct report_style *style,
                       FILE *out)
{
    (void)style;
    schema_print("fit_batch", json_make(report), out);
}

const struct report_ops batch_report_json = {.write = json_write};
