/* SPDX-License-Identifier: Apache-2.0
 * A diff for programs. Its names are a contract: man/memsim.1, JSON OF DIFF. */
#include <stdlib.h>

#include "memsim/report/text/diff_report.h"
#include "common/base/json_add.h"
#include "memsim/report/json/schema.h"

static void add_pair(cJSON *object, const char *name, const struct diff_pair *p)
{
    cJSON *pair = cJSON_AddObjectToObject(object, name);

    json_add_bytes(pair, "before", p->before);
    json_add_bytes(pair, "after", p->after);
}

static void add_run(cJSON *root, const char *which, const char *name,
                    const struct result *r)
{
    cJSON *run = cJSON_AddObjectToObject(root, which);
    size_t words = 0;

    while (r->command[words])
        words++;
    cJSON_AddStringToObject(run, "source", name);
    cJSON_AddStringToObject(run, "verdict", result_verdict_name(r->verdict));
    json_add_strings(run, "command", r->command, words);
    cJSON_AddStringToObject(run, "gpu", r->gpu.name);
    json_add_bytes(run, "memory_bytes", r->gpu.memory_bytes);
    cJSON_AddStringToObject(run, "torch", r->torch_version);
}

static void add_module(cJSON *array, const struct diff_device *d,
                       const struct diff_module *m)
{
    cJSON *module = json_add_object(array);

    cJSON_AddStringToObject(module, "name", m->name);
    if (m->parent != SIZE_MAX)
        cJSON_AddStringToObject(module, "parent", d->modules[m->parent].name);
    cJSON_AddStringToObject(module, "state",
                            !m->was  ? "new"
                            : !m->is ? "gone"
                                     : "both");
    add_pair(module, "bytes_at_peak", &m->held);
    add_pair(module, "self_bytes_at_peak", &m->self);
}

/* Only what changed. */
static void add_modules(cJSON *device, const struct diff_device *d)
{
    cJSON *array = cJSON_AddArrayToObject(device, "modules");

    for (size_t i = 0; i < d->module_count; i++) {
        const struct diff_module *m = &d->modules[i];
        if (m->was != m->is || m->held.before != m->held.after ||
            m->self.before != m->self.after)
            add_module(array, d, m);
    }
    add_pair(device, "no_module", &d->outside);
}

static void add_culprit(cJSON *device, const struct diff_device *d)
{
    struct diff_culprit c = diff_culprit_find(d);

    if (!c.name)
        return;
    cJSON *most = cJSON_AddObjectToObject(device, "grew_most");
    cJSON_AddStringToObject(most, "name", c.name);
    cJSON_AddBoolToObject(most, "itself", c.itself);
    json_add_bytes(most, "before", c.bytes.before);
    json_add_bytes(most, "after", c.bytes.after);
}

static void add_device(cJSON *array, const struct diff_device *d)
{
    cJSON *device = json_add_object(array);

    json_add_uint(device, "rank", d->rank);
    json_add_uint(device, "index", d->index);
    add_pair(device, "peak_allocated_bytes", &d->allocated);
    add_pair(device, "peak_reserved_bytes", &d->reserved);
    add_pair(device, "peak_used_bytes", &d->used);
    add_pair(device, "headroom_bytes", &d->headroom);
    if (!d->attributed)
        return;
    cJSON *categories = cJSON_AddObjectToObject(device, "categories_at_peak");
    for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++)
        if (d->categories[c].before || d->categories[c].after)
            add_pair(categories,
                     attribution_category_name((enum trace_category)c),
                     &d->categories[c]);
    add_modules(device, d);
    add_culprit(device, d);
}

static void add_limit(cJSON *root, const struct diff_report *r)
{
    if (!r->limit.given)
        return;
    if (r->limit.relative)
        cJSON_AddNumberToObject(root, "fail_above_percent", r->limit.percent);
    else
        json_add_bytes(root, "fail_above_bytes", r->limit.bytes);
    cJSON_AddBoolToObject(root, "past_limit", r->past);
}

void diff_report_json(const void *report, FILE *out)
{
    const struct diff_report *r = report;
    cJSON *root = cJSON_CreateObject();

    schema_add_version(root, "diff_schema");
    cJSON_AddStringToObject(root, "words", r->words);
    add_limit(root, r);
    add_run(root, "before", r->before, r->diff->before);
    add_run(root, "after", r->after, r->diff->after);
    cJSON *devices = cJSON_AddArrayToObject(root, "devices");
    for (size_t i = 0; i < r->diff->device_count; i++)
        add_device(devices, &r->diff->devices[i]);
    time_diff_json(root, r->time);
    if (r->limits_time) {
        cJSON_AddNumberToObject(root, "fail_slower_percent", r->slower_limit);
        cJSON_AddBoolToObject(root, "past_slower", r->slower);
    }
    json_add_strings(root, "notes", r->notes, r->note_count);
    schema_print("diff", root, out);
}
