/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/export/perfetto_time.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/report/export/perfetto_trace.h"
#include "memsim/time/time_log.h"

/* Numbers of tracks, beyond those of modules (perfetto_trace.c). */
#define CALL_TRACKS   0x20000000u
#define STREAM_TRACKS 0x40000000u
#define STEP_TRACKS   0x10000000u
#define TRACKS        65536u /* of a rank */
#define THREADS       4096u  /* of a process whose calls are written */

void perfetto_time_clock(struct perfetto *to, const struct time_log *log)
{
    to->clock = log;
    to->shift_ns = log ? log->first_ns : 0;
}

uint64_t perfetto_time_start(const struct result *result)
{
    uint64_t first_ns = UINT64_MAX;

    for (size_t i = 0; i < result->timeline_count; i++)
        if (result->timelines[i].log->first_ns < first_ns)
            first_ns = result->timelines[i].log->first_ns;
    return first_ns;
}

struct writing {
    struct perfetto *to;
    const struct time_log *log;
    unsigned rank;
    unsigned nth; /* of the rank's timelines */
    struct time_log_streams streams;
    struct map threads; /* those that have a name, by number + 1 */
    char *args;
    size_t args_size;
};

static struct perfetto_track track_of(const struct writing *w, uint32_t base,
                                      uint32_t number)
{
    return (struct perfetto_track){
        perfetto_track_of(w->rank, 0).process,
        base + w->rank * TRACKS + w->nth * THREADS + number};
}

/* Arrows of all ranks and processes have numbers of their own. */
static uint64_t flow_of(const struct writing *w, uint64_t call)
{
    return (uint64_t)w->rank << 48 | (uint64_t)w->nth << 40 | call;
}

static uint64_t written_ns(const struct writing *w, uint64_t ns)
{
    return w->log->first_ns + ns;
}

static void put_member(FILE *out, const char *name, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(out, ",\"%s\":", name);
    perfetto_put_text(out, text);
}

/* What an operation waited for before it started. */
static const char *cause_name(const struct simulation_op *op)
{
    static const char *const names[SIM_CAUSES] = {
        [SIM_BY_HOST] = "its launch",
        [SIM_BY_STREAM] = "the operation before it on its stream",
        [SIM_BY_EVENT] = "another stream",
        [SIM_BY_ENGINE] = "the copy engine",
        [SIM_BY_PEER] = "another rank",
    };

    return names[op->done.cause];
}

/* Opens the arguments of a slice, of which MEMBERS is the first. */
static FILE *args_open(struct writing *w)
{
    free(w->args);
    w->args = NULL;
    return open_memstream(&w->args, &w->args_size);
}

static void op_args(struct writing *w, const struct simulation_op *op)
{
    FILE *out = args_open(w);

    if (!out)
        return;
    fprintf(out, "\"bytes\":%" PRIu64 ",\"launched_after_us\":%.3f", op->bytes,
            (double)(op->done.start_ns - op->done.called_ns) / 1e3);
    put_member(out, "family", work_family_name(op->price.family));
    put_member(out, "basis", cost_basis_name(op->price.answer.basis));
    put_member(out, "waited_for", cause_name(op));
    put_member(out, "operator", trace_names_get(&w->log->names, op->operator));
    if (op->module) {
        char *module = module_table_title(&w->log->modules, op->module);
        put_member(out, "module", module);
        free(module);
    }
    fclose(out);
}

static void write_op(struct writing *w, const struct simulation_op *op)
{
    bool is_new;
    uint32_t stream =
        time_log_stream(&w->streams, op->device, op->stream, &is_new);
    struct perfetto_track track = track_of(w, STREAM_TRACKS, stream);
    char name[1024];

    if (is_new) {
        snprintf(name, sizeof name, "GPU %u, stream %u", op->device, stream);
        perfetto_name_thread(w->to, track, name);
    }
    time_log_op_name(op, &w->log->names, name, sizeof name);
    op_args(w, op);
    perfetto_slice(w->to, track, written_ns(w, op->done.start_ns),
                   written_ns(w, op->done.end_ns), name,
                   w->args ? w->args : "");
    if (time_log_call(w->log, op->call))
        perfetto_flow(w->to, track, written_ns(w, op->done.start_ns),
                      flow_of(w, op->call), false);
}

static void write_call(struct writing *w, const struct simulation_call *call)
{
    struct perfetto_track track = track_of(w, CALL_TRACKS, call->thread);
    const struct simulation_op *woken =
        call->woken_by ? time_log_op(w->log, call->woken_by) : NULL;
    char name[1024];

    if (call->thread >= THREADS)
        return;
    if (!map_get(&w->threads, call->thread + UINT64_C(1))) {
        map_put(&w->threads, call->thread + UINT64_C(1), w);
        snprintf(name, sizeof name, "CUDA calls, thread %u", call->thread);
        perfetto_name_thread(w->to, track, name);
    }
    FILE *out = args_open(w);
    if (out) {
        fprintf(out, "\"number\":%" PRIu64, call->number);
        if (woken) {
            time_log_op_name(woken, &w->log->names, name, sizeof name);
            put_member(out, "waited_for", name);
        }
        fclose(out);
    }
    perfetto_slice(w->to, track, written_ns(w, call->start_ns),
                   written_ns(w, call->end_ns), time_log_call_name(call->kind),
                   w->args ? w->args : "");
    if (call->tag && time_log_op(w->log, call->tag))
        perfetto_flow(w->to, track, written_ns(w, call->start_ns),
                      flow_of(w, call->number), true);
}

static void write_steps(struct writing *w)
{
    const struct simulation *s = &w->log->simulation;
    struct perfetto_track track = track_of(w, STEP_TRACKS, 0);
    char name[64];

    if (s->steps.count)
        perfetto_name_thread(w->to, track, "steps, predicted");
    for (size_t i = 0; i < s->steps.count; i++) {
        snprintf(name, sizeof name, "step %zu%s", i,
                 s->steps.steps[i].warm_up ? " (warm-up)" : "");
        perfetto_slice(w->to, track, written_ns(w, s->begins[i].ns),
                       written_ns(w, s->ends[i].ns), name, "");
    }
}

static void write_timeline(struct writing *w)
{
    const struct time_log *log = w->log;

    write_steps(w);
    for (size_t i = 0; i < log->call_count; i++)
        write_call(w, &log->calls[i]);
    for (size_t i = 0; i < log->op_count; i++)
        write_op(w, &log->ops[i]);
    time_log_streams_fini(&w->streams);
    map_fini(&w->threads);
    free(w->args);
}

void perfetto_time_write(struct perfetto *to, const struct result *result,
                         unsigned rank)
{
    unsigned nth = 0;

    for (size_t i = 0; i < result->timeline_count; i++) {
        const struct result_timeline *t = &result->timelines[i];
        struct writing w = {.to = to, .log = t->log, .rank = rank, .nth = nth};
        if (t->rank != rank || nth == PERFETTO_PROCESSES)
            continue;
        write_timeline(&w);
        nth++;
    }
}
