/* SPDX-License-Identifier: Apache-2.0
 * The report as a trace of events: a process for each rank, with counters of
 * its GPUs, a thread of steps and phases, one for each of its threads that
 * calls modules, and the predicted timeline (perfetto_time.h). */
#include <stdlib.h>
#include <string.h>

#include "common/trace/session_table.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/base/json_add.h"
#include "memsim/report/export/perfetto_time.h"
#include "memsim/report/export/perfetto_trace.h"
#include "memsim/report/report.h"

struct writer {
    struct perfetto to;
    const struct result *result;
    cJSON *told; /* of each process, in the metadata */
};

/* What the trace of PROCESS says; NULL: nobody has read it. */
static const struct result_events *events_of(const struct result *r,
                                             uint32_t process)
{
    for (size_t i = 0; i < r->event_count; i++)
        if (r->events[i].process == process)
            return &r->events[i];
    return NULL;
}

/* --- steps and phases ----------------------------------------------------- */

struct slices {
    struct perfetto *to;
    struct perfetto_track track;
    uint64_t origin_ns;
    uint64_t ends_ns[3]; /* of a step, a phase, a recomputation within it */
    unsigned open;
    unsigned kept; /* of those, what lies around all that is to come */
};

static void slices_close(struct slices *s, uint64_t until_ns)
{
    while (s->open > s->kept && s->ends_ns[s->open - 1] <= until_ns)
        perfetto_slice_end(s->to, s->track,
                           s->origin_ns + s->ends_ns[--s->open]);
}

/* A slice that would end after the one around it ends with it. */
static void slices_open(struct slices *s, uint64_t start_ns, uint64_t end_ns,
                        const char *name, const struct perfetto_value *values,
                        size_t count)
{
    slices_close(s, start_ns);
    if (s->open == sizeof s->ends_ns / sizeof *s->ends_ns)
        return;
    if (s->open && end_ns > s->ends_ns[s->open - 1])
        end_ns = s->ends_ns[s->open - 1];
    perfetto_slice_begin(s->to, s->track, s->origin_ns + start_ns, name, values,
                         count);
    s->ends_ns[s->open++] = end_ns;
}

static uint64_t step_end(const struct attribution *a, size_t first)
{
    uint64_t end_ns = 0;

    for (size_t i = first;
         i < a->phase_count && a->phases[i].step == a->phases[first].step; i++)
        if (a->phases[i].end_ns > end_ns)
            end_ns = a->phases[i].end_ns;
    return end_ns;
}

static void phase_open(struct slices *s, const struct attribution_phase *p)
{
    struct perfetto_value values[] = {{"peak_bytes", p->peak_bytes},
                                      {"end_bytes", 0}};

    for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++)
        values[1].value += p->end.bytes[c];
    slices_open(s, p->start_ns, p->end_ns, attribution_phase_name(p->phase),
                values, 2);
}

static void phases_write(struct slices *s, const struct attribution *a)
{
    if (!a->phase_count)
        return;
    perfetto_name_thread(s->to, s->track, "steps and phases");
    for (size_t i = 0; i < a->phase_count; i++) {
        const struct attribution_phase *p = &a->phases[i];
        if (!i || p->step != p[-1].step) {
            char name[32];
            snprintf(name, sizeof name, "step %u", p->step);
            s->kept = 0;
            slices_close(s, UINT64_MAX);
            slices_open(s, p->start_ns, step_end(a, i), name, NULL, 0);
            s->kept = 1;
        }
        phase_open(s, p);
    }
    s->kept = 0;
    slices_close(s, UINT64_MAX);
}

/* --- GPUs ---------------------------------------------------------------- */

/* The categories that ever hold something; each point tells all of them. */
static size_t categories_find(const struct attribution *a,
                              struct perfetto_value *values, size_t *categories)
{
    size_t count = 0;

    for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++) {
        bool held = false;
        for (size_t i = 0; i < a->point_count && !held; i++)
            held = a->points[i].sums.bytes[c] != 0;
        if (!held)
            continue;
        values[count].name = attribution_category_name((enum trace_category)c);
        categories[count++] = c;
    }
    return count;
}

static void categories_write(struct perfetto *to, struct perfetto_track track,
                             uint64_t origin_ns, const struct result_device *d)
{
    const struct attribution *a = d->attribution;
    struct perfetto_value values[TRACE_CATEGORY_COUNT];
    size_t categories[TRACE_CATEGORY_COUNT];
    size_t count = categories_find(a, values, categories);
    char name[48], size[16];

    snprintf(name, sizeof name, "GPU %u by category", d->index);
    for (size_t i = 0; i < a->point_count; i++) {
        for (size_t c = 0; c < count; c++)
            values[c].value = a->points[i].sums.bytes[categories[c]];
        perfetto_counter(to, track, origin_ns + a->points[i].time_ns, name,
                         values, count);
    }
    snprintf(name, sizeof name, "peak of GPU %u: %s", d->index,
             units_format_bytes(d->peak_allocated_bytes, size, sizeof size));
    perfetto_instant(to, track, origin_ns + a->peak_ns, name);
}

/* --- processes ------------------------------------------------------------ */

/* The process of RANK that had the highest peak on D, its NTH there. */
static void process_write(struct writer *w, const struct result_rank *rank,
                          unsigned nth, const struct result_device *d)
{
    const struct result_events *events = events_of(w->result, d->process);
    const struct perfetto_track track = perfetto_track_of(rank->rank, nth);
    struct perfetto_process process = {
        .to = &w->to,
        .track = track,
        .counters = true,
    };

    if (!events)
        return;
    uint64_t origin_ns = perfetto_log_start(events->log);
    perfetto_time_clock(&w->to, result_timeline_find(w->result, d->process));
    if (d->attribution) {
        struct slices slices = {
            .to = &w->to, .track = track, .origin_ns = origin_ns};
        phases_write(&slices, d->attribution);
    }
    perfetto_log_write(events->log, &process);
    for (size_t i = 0; i < rank->device_count; i++)
        if (rank->devices[i].process == d->process &&
            rank->devices[i].attribution)
            categories_write(&w->to, track, origin_ns, &rank->devices[i]);
    cJSON *told =
        perfetto_process_told(w->told, rank->rank, &process, &events->err);
    if (d->attribution)
        json_add_uint(told, "phases_dropped", d->attribution->phases_dropped);
    perfetto_time_clock(&w->to, NULL);
}

static bool is_first_of_process(const struct result_rank *rank, size_t device)
{
    for (size_t i = 0; i < device; i++)
        if (rank->devices[i].process == rank->devices[device].process)
            return false;
    return true;
}

static void rank_write(struct writer *w, const struct result_rank *rank)
{
    const struct perfetto_track track = perfetto_track_of(rank->rank, 0);
    char *name = xasprintf("rank %u%s%s", rank->rank,
                           *rank->program ? ": " : "", rank->program);
    unsigned nth = 0;

    if (w->result->events || w->result->timelines)
        perfetto_name_process(&w->to, track, name);
    free(name);
    for (size_t i = 0; i < rank->device_count; i++)
        if (is_first_of_process(rank, i) && nth < PERFETTO_PROCESSES)
            process_write(w, rank, nth++, &rank->devices[i]);
    perfetto_time_write(&w->to, w->result, rank->rank);
}

/* Processes of one machine have one clock. */
static uint64_t earliest_time(const struct result *r)
{
    uint64_t first_ns = perfetto_time_start(r);

    for (size_t i = 0; i < r->event_count; i++) {
        uint64_t time_ns = perfetto_log_start(r->events[i].log);
        if (time_ns && time_ns < first_ns)
            first_ns = time_ns;
    }
    return first_ns == UINT64_MAX ? 0 : first_ns;
}

static void perfetto_report_write(const void *report,
                                  const struct report_style *style, FILE *out)
{
    const struct result *result = report;
    struct writer w = {.result = result};
    cJSON *metadata = perfetto_metadata(result);

    (void)style;
    w.told = cJSON_AddArrayToObject(metadata, "processes");
    perfetto_begin(&w.to, out);
    w.to.origin_ns = earliest_time(result);
    for (size_t i = 0; i < result->rank_count; i++)
        rank_write(&w, &result->ranks[i]);
    perfetto_end(&w.to, metadata);
    cJSON_Delete(metadata);
}

const struct report_ops report_perfetto = {.write = perfetto_report_write,
                                           .gzip_by_name = true};
