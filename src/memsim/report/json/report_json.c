/* SPDX-License-Identifier: Apache-2.0
 * The report for programs. Its names are a contract: man/memsim.1, JSON. */
#include "memsim/report/text/growth_report.h"
#include "memsim/report/text/collation_report.h"
#include "memsim/report/text/host_report.h"
#include "memsim/report/text/law_report.h"
#include "memsim/report/text/scan_read.h"
#include "memsim/report/text/seeds_report.h"
#include "memsim/report/json/report_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "memsim/report/text/advice_report.h"
#include "memsim/report/json/attribute_json.h"
#include "common/base/json_add.h"
#include "memsim/report/report.h"
#include "memsim/report/text/time_report.h"
#include "memsim/time/timing.h"
#include "memsim/collectives/traffic.h"
#include "memsim/report/json/schema.h"

static void add_ooms(cJSON *device, const struct result_device *d)
{
    cJSON *array = cJSON_AddArrayToObject(device, "ooms");

    for (size_t i = 0; i < d->oom_count; i++) {
        const struct result_oom *o = &d->ooms[i];
        cJSON *oom = json_add_object(array);
        json_add_bytes(oom, "requested_bytes", o->requested_bytes);
        json_add_bytes(oom, "free_bytes", o->free_bytes);
        json_add_bytes(oom, "allocated_bytes", o->allocated_bytes);
        json_add_bytes(oom, "reserved_unallocated_bytes", o->unallocated_bytes);
        json_add_bytes(oom, "missing_bytes", o->missing_bytes);
        cJSON_AddStringToObject(oom, "by", o->torch ? "torch" : "cudaMalloc");
        cJSON_AddBoolToObject(oom, "caught", o->caught);
        if (!o->at)
            continue;
        cJSON_AddStringToObject(oom, "module", o->at->module);
        json_add_uint(oom, "step", o->at->step);
        cJSON_AddStringToObject(oom, "phase",
                                attribution_phase_name(o->at->phase));
        if (o->at->episode != EPISODE_NONE)
            cJSON_AddStringToObject(oom, "episode",
                                    episode_name(o->at->episode));
    }
}

static void add_others(cJSON *device, const struct result_device *d)
{
    cJSON *array =
        d->other_count ? cJSON_AddArrayToObject(device, "other_processes")
                       : NULL;

    for (size_t i = 0; i < d->other_count; i++) {
        const struct result_other *o = &d->others[i];
        cJSON *other = json_add_object(array);
        json_add_uint(other, "process", o->number);
        json_add_uint(other, "rank", o->rank);
        cJSON_AddStringToObject(other, "program", o->program);
        json_add_bytes(other, "peak_used_bytes", o->peak_bytes);
    }
}

static void add_things(cJSON *device, const struct result_device *d)
{
    cJSON *array = cJSON_AddArrayToObject(device, "things_at_peak");

    for (size_t i = 0; i < d->thing_count; i++) {
        const struct peak_thing *t = &d->things[i];
        cJSON *thing = json_add_object(array);
        cJSON_AddStringToObject(thing, "label", t->label);
        json_add_bytes(thing, "bytes", t->bytes);
        if (t->count)
            json_add_uint(thing, "count", t->count);
        if (!t->category)
            continue;
        cJSON_AddStringToObject(thing, "category", t->category);
        cJSON_AddStringToObject(thing, "module", t->module);
        if (*t->operation)
            cJSON_AddStringToObject(thing, "operator", t->operation);
        if (*t->where)
            cJSON_AddStringToObject(thing, "where", t->where);
        attribute_json_shape(thing, t->shape);
    }
}

static void add_range(cJSON *device, const struct workspace_range *r)
{
    char source[128];

    if (r->most_bytes == r->least_bytes)
        return;
    cJSON *range = cJSON_AddObjectToObject(device, "peak_allocated_range");
    json_add_bytes(range, "least_bytes", r->least_bytes);
    json_add_bytes(range, "most_bytes", r->most_bytes);
    cJSON_AddStringToObject(range, "workspaces",
                            workspace_range_source(r, source, sizeof source));
}

static void add_reserved_range(cJSON *device, const struct reserved_range *r)
{
    if (r->most_bytes == r->least_bytes)
        return;
    cJSON *range = cJSON_AddObjectToObject(device, "peak_reserved_range");
    json_add_bytes(range, "least_bytes", r->least_bytes);
    json_add_bytes(range, "most_bytes", r->most_bytes);
}

static void add_device(cJSON *array, const struct result *r,
                       const struct result_device *d)
{
    cJSON *device = json_add_object(array);

    json_add_uint(device, "index", d->index);
    json_add_bytes(device, "capacity_bytes", d->capacity_bytes);
    json_add_bytes(device, "peak_allocated_bytes", d->peak_allocated_bytes);
    add_range(device, &d->range);
    add_reserved_range(device, &d->reserved_range);
    if (d->retries)
        json_add_uint(device, "retries", d->retries);
    json_add_bytes(device, "peak_reserved_bytes", d->peak_reserved_bytes);
    json_add_bytes(device, "peak_used_bytes", d->peak_used_bytes);
    json_add_bytes(device, "headroom_bytes", d->headroom_bytes);
    json_add_bytes(device, "context_bytes", d->context_bytes);
    json_add_bytes(device, "libraries_bytes", d->libraries_bytes);
    add_others(device, d);
    add_ooms(device, d);
    if (d->thing_count)
        add_things(device, d);
    if (d->attribution)
        attribute_json_add(device, d->attribution);
    law_json_add(device, d, &r->wanted);
    growth_json_add(device, d);
    if (advice_is_told(d))
        advice_json_add(device, d);
}

/* The ranks that an object stands for. */
static void add_members(cJSON *to, const struct result_rank *rank)
{
    char *members = result_rank_members(rank);

    cJSON_AddStringToObject(to, "members", members);
    free(members);
}

static void add_ranks(cJSON *root, const struct result *r)
{
    cJSON *ranks = cJSON_AddArrayToObject(root, "ranks");

    for (size_t i = 0; i < r->rank_count; i++) {
        cJSON *rank = json_add_object(ranks);
        json_add_uint(rank, "rank", r->ranks[i].rank);
        add_members(rank, &r->ranks[i]);
        cJSON_AddStringToObject(rank, "program", r->ranks[i].program);
        cJSON *devices = cJSON_AddArrayToObject(rank, "devices");
        for (size_t j = 0; j < r->ranks[i].device_count; j++)
            add_device(devices, r, &r->ranks[i].devices[j]);
        if (r->ranks[i].timing && r->ranks[i].timing->step_count)
            time_json_steps(rank, r->ranks[i].timing);
    }
}

static void add_guesses(cJSON *root, const struct result *r)
{
    cJSON *list = cJSON_AddArrayToObject(root, "guesses");

    for (size_t i = 0; i < r->guess_count; i++) {
        const struct result_guess *g = &r->guesses[i];
        cJSON *guess = json_add_object(list);
        cJSON_AddStringToObject(guess, "operator", g->operation);
        cJSON_AddStringToObject(guess, "module", g->module);
        cJSON_AddStringToObject(guess, "where", g->where);
        cJSON_AddStringToObject(guess, "what", g->what);
        json_add_uint(guess, "times", g->times);
        json_add_uint(guess, "elements", g->elements);
        json_add_uint(guess, "chosen", g->chosen);
    }
    if (r->guesses_dropped)
        json_add_uint(root, "guesses_dropped", r->guesses_dropped);
}

static void add_files(cJSON *root, const struct result *r)
{
    cJSON *list = cJSON_AddArrayToObject(root, "files");

    for (size_t i = 0; i < r->file_count; i++) {
        cJSON *file = json_add_object(list);
        cJSON_AddStringToObject(file, "path", r->files[i].path);
        cJSON_AddBoolToObject(file, "kept",
                              r->files[i].kind == SESSION_FILE_KEPT);
        cJSON_AddBoolToObject(file, "taken",
                              r->files[i].kind == SESSION_FILE_TAKEN);
    }
}

static void add_capabilities(cJSON *root, const struct capability_set *code)
{
    char text[256];

    if (!capability_is_empty(code))
        cJSON_AddStringToObject(root, "capabilities",
                                capability_text(code, text, sizeof text));
}

static void add_failures(cJSON *root, const struct result *r)
{
    cJSON *list = cJSON_AddArrayToObject(root, "failed_processes");

    for (size_t i = 0; i < r->failure_count; i++) {
        const struct result_failure *f = &r->failures[i];
        cJSON *item = json_add_object(list);
        json_add_uint(item, "process", f->number);
        json_add_uint(item, "rank", f->rank);
        cJSON_AddStringToObject(item, "program", f->program);
        if (!f->killed)
            json_add_uint(item, "exit_status", f->status);
        cJSON_AddBoolToObject(item, "out_of_memory", f->out_of_memory);
        cJSON_AddBoolToObject(item, "run_again", f->made_good);
    }
}

static void add_strays(cJSON *root, const struct result *r)
{
    cJSON *list = cJSON_AddArrayToObject(root, "strays");

    for (size_t i = 0; i < r->stray_count; i++) {
        const struct result_stray *stray = &r->strays[i];
        char *ranks = rank_set_text(&stray->ranks);
        cJSON *item = json_add_object(list);
        json_add_uint(item, "index", stray->index);
        if (stray->owner >= 0)
            json_add_uint(item, "rank", (uint64_t)stray->owner);
        cJSON_AddStringToObject(item, "ranks", ranks);
        json_add_bytes(item, "least_bytes", stray->least_bytes);
        json_add_bytes(item, "most_bytes", stray->most_bytes);
        free(ranks);
    }
}

static void add_invocation(cJSON *root, const struct result *r)
{
    size_t words = 0;

    while (r->invocation && r->invocation[words])
        words++;
    if (words)
        json_add_strings(root, "invocation", r->invocation, words);
}

cJSON *report_json_make(const struct result *r)
{
    cJSON *root = cJSON_CreateObject();
    size_t arguments = 0;

    while (r->command[arguments])
        arguments++;
    schema_add_version(root, "schema");
    cJSON_AddStringToObject(root, "verdict", result_verdict_name(r->verdict));
    cJSON_AddNumberToObject(root, "exit_status", r->exit_status);
    cJSON_AddNumberToObject(root, "command_status", r->command_status);
    if (r->endless)
        cJSON_AddTrueToObject(root, "endless");
    if (r->real)
        cJSON_AddTrueToObject(root, "real");
    if (r->emulated)
        json_add_uint(root, "emulated_ranks", r->emulated);
    if (r->stray_count)
        add_strays(root, r);
    json_add_uint(root, "failed_allocations", r->refused);
    add_failures(root, r);
    if (r->verdict == VERDICT_UNKNOWN) {
        json_add_bytes(root, "needs_bytes", r->needs_bytes);
        cJSON_AddStringToObject(root, "why", r->why);
    }
    if (r->no_steps)
        cJSON_AddTrueToObject(root, "no_steps");
    json_add_strings(root, "command", r->command, arguments);
    add_invocation(root, r);
    cJSON *gpu = cJSON_AddObjectToObject(root, "gpu");
    cJSON_AddStringToObject(gpu, "name", r->gpu.name);
    cJSON_AddStringToObject(gpu, "device_name", r->gpu.device_name);
    json_add_bytes(gpu, "memory_bytes", r->gpu.memory_bytes);
    if (r->fail_above_percent)
        cJSON_AddNumberToObject(root, "fail_above_percent",
                                r->fail_above_percent);
    if (r->job_steps)
        json_add_uint(root, "job_steps", r->job_steps);
    if (r->torch_version[0])
        cJSON_AddStringToObject(root, "torch", r->torch_version);
    add_capabilities(root, &r->code);
    if (r->directory)
        cJSON_AddStringToObject(root, "trace", r->directory);
    cJSON_AddNumberToObject(root, "seconds", r->seconds);
    add_ranks(root, r);
    host_json_add(root, r);
    scan_json_add(root, r);
    seeds_json_add(root, r);
    time_json_add(root, r);
    if (r->traffic)
        traffic_json_add(root, r->traffic);
    collation_json_add(root, r);
    json_add_strings(root, "notes", r->notes, r->note_count);
    add_guesses(root, r);
    add_files(root, r);
    return root;
}

static void json_write(const void *result, const struct report_style *style,
                       FILE *out)
{
    (void)style;
    schema_print("report", report_json_make(result), out);
}

const struct report_ops report_json = {.write = json_write};
