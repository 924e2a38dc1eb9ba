/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/json/replay_json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/json_add.h"
#include "memsim/report/json/report_json.h"
#include "memsim/report/json/schema.h"
#include "memsim/report/text/replay_report.h"

/* Addresses and streams may need more than the 53 bits of a JSON number. */
static void add_hex(cJSON *object, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%#" PRIx64, number);
    cJSON_AddStringToObject(object, name, text);
}

static void add_place(cJSON *object, struct alloc_pool_id pool, bool small,
                      uint64_t stream)
{
    cJSON *id = cJSON_AddArrayToObject(object, "pool");

    cJSON_AddItemToArray(id, cJSON_CreateNumber((double)pool.first));
    cJSON_AddItemToArray(id, cJSON_CreateNumber((double)pool.second));
    cJSON_AddStringToObject(object, "kind", small ? "small" : "large");
    add_hex(object, "stream", stream);
}

static const char *outcome_name(enum whatif_outcome outcome)
{
    static const char *const names[] = {[WHATIF_FITS] = "fits",
                                        [WHATIF_OOM] = "oom",
                                        [WHATIF_UNKNOWN] = "unknown"};

    return names[outcome];
}

static void add_row(cJSON *rows, const struct whatif *w,
                    const struct whatif_row *row)
{
    cJSON *to = json_add_object(rows);
    cJSON *devices;

    cJSON_AddStringToObject(to, "alloc_conf", row->conf);
    cJSON_AddBoolToObject(to, "advised", row->advised);
    cJSON_AddStringToObject(to, "verdict", outcome_name(
                                whatif_outcome(w, &row->result)));
    devices = cJSON_AddArrayToObject(to, "devices");
    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        const struct replay_device *d = &row->result.devices[i];
        cJSON *device;

        if (!d->used)
            continue;
        device = json_add_object(devices);
        json_add_uint(device, "index", i);
        json_add_bytes(device, "peak_allocated_bytes", d->peak_allocated_bytes);
        json_add_bytes(device, "peak_reserved_bytes", d->peak_reserved_bytes);
        json_add_bytes(device, "peak_used_bytes", d->peak_used_bytes);
        json_add_uint(device, "ooms", d->oom_count);
        json_add_uint(device, "num_alloc_retries",
                       (uint64_t)d->stats.num_alloc_retries);
        json_add_uint(device, "num_device_alloc",
                       (uint64_t)d->stats.num_device_alloc);
        json_add_uint(device, "num_device_free",
                       (uint64_t)d->stats.num_device_free);
    }
}

static void add_groups(cJSON *to, const struct fragments *f)
{
    cJSON *groups = cJSON_AddArrayToObject(to, "pools");

    for (size_t i = 0; i < f->group_count; i++) {
        const struct fragments_group *g = &f->groups[i];
        cJSON *group = json_add_object(groups);

        add_place(group, g->pool, g->small, g->stream);
        json_add_bytes(group, "allocated_bytes", g->allocated_bytes);
        json_add_bytes(group, "waiting_bytes", g->waiting_bytes);
        json_add_bytes(group, "cached_bytes", g->cached_bytes);
        json_add_bytes(group, "largest_cached_bytes", g->largest_cached_bytes);
        json_add_uint(group, "segments", g->segments);
        json_add_uint(group, "blocks", g->blocks);
    }
}

static void add_reasons(cJSON *to, const struct fragments *f)
{
    cJSON *unusable;

    if (!f->request.bytes)
        return;
    json_add_bytes(to, "requested_bytes", f->request.bytes);
    unusable = cJSON_AddObjectToObject(to, "unusable");
    for (int i = 0; i < FRAGMENTS_REASONS; i++) {
        cJSON *reason = cJSON_AddObjectToObject(
            unusable, fragments_reason_name((enum fragments_reason)i));

        json_add_bytes(reason, "bytes", f->reasons[i].bytes);
        json_add_bytes(reason, "largest_bytes", f->reasons[i].largest_bytes);
        json_add_uint(reason, "blocks", f->reasons[i].blocks);
    }
}

static void add_segments(cJSON *to, const struct fragments *f)
{
    cJSON *segments = cJSON_AddArrayToObject(to, "segments");

    for (size_t i = 0; i < f->segment_count; i++) {
        const struct fragments_segment *s = &f->segments[i];
        cJSON *segment = json_add_object(segments);

        add_hex(segment, "address", s->address);
        json_add_bytes(segment, "bytes", s->bytes);
        add_place(segment, s->pool, s->small, s->stream);
        cJSON_AddBoolToObject(segment, "expandable", s->expandable);
        json_add_bytes(segment, "allocated_bytes", s->allocated_bytes);
        json_add_bytes(segment, "largest_cached_bytes",
                       s->largest_cached_bytes);
        cJSON_AddStringToObject(segment, "map", s->map);
    }
}

static void add_lines(cJSON *to, const struct replay_lines *lines)
{
    cJSON *array = cJSON_AddArrayToObject(to, "lines");

    for (size_t i = 0; i < lines->count; i++) {
        cJSON *line = json_add_object(array);

        cJSON_AddStringToObject(line, "line", lines->rows[i].text);
        json_add_bytes(line, "bytes", lines->rows[i].bytes);
        json_add_uint(line, "blocks", lines->rows[i].blocks);
    }
}

static void add_recording(cJSON *array, const struct replay_report *r,
                          const struct recording *rec)
{
    const struct whatif *w = &rec->whatif;
    const struct whatif_row *best = whatif_best(w);
    cJSON *to = json_add_object(array), *rows, *look;

    cJSON_AddStringToObject(to, "recording", rec->path);
    json_add_uint(to, "rank", rec->info.rank);
    cJSON_AddStringToObject(to, "torch", rec->info.torch_version);
    cJSON_AddBoolToObject(to, "exact", rec->plan.exact);
    json_add_uint(to, "blocks_checked", rec->plan.blocks_checked);
    if (!rec->plan.exact)
        cJSON_AddStringToObject(to, "difference", rec->plan.difference);
    rows = cJSON_AddArrayToObject(to, "configurations");
    for (size_t i = 0; i < w->row_count; i++)
        add_row(rows, w, &w->rows[i]);
    if (best)
        cJSON_AddStringToObject(to, "advice", best->conf);
    if (r->swept) {
        json_add_bytes(to, "smallest_memory_bytes", w->smallest_bytes);
        cJSON_AddBoolToObject(to, "smallest_is_least", w->smallest_is_least);
    }
    if (rec == r->worst && r->lines.known)
        add_lines(to, &r->lines);
    look = cJSON_AddObjectToObject(to, "fragmentation");
    cJSON_AddStringToObject(look, "at", w->at_oom ? "oom" : "peak");
    json_add_uint(look, "device", w->device);
    add_reasons(look, &w->fragments);
    add_groups(look, &w->fragments);
    add_segments(look, &w->fragments);
}

cJSON *replay_json_make(const struct replay_report *r)
{
    cJSON *root = report_json_make(&r->result);
    cJSON *array = cJSON_AddArrayToObject(root, "replay");

    for (size_t i = 0; i < r->count; i++)
        if (r->recordings[i].whatif.row_count)
            add_recording(array, r, &r->recordings[i]);
    return root;
}

static void json_write(const void *report, const struct report_style *style,
                       FILE *out)
{
    (void)style;
    schema_print("report", replay_json_make(report), out);
}

const struct report_ops replay_report_json = {.write = json_write};
