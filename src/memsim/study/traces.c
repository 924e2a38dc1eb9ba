/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/traces.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "common/trace/play.h"
#include "memsim/collectives/traffic.h"
#include "memsim/report/export/perfetto_trace.h"

#define LISTENERS (4 + RECORDED_LISTENERS)

/* Gives the records of PATH to COUNT LISTENERS; PROGRESS, which may be NULL, is
 * told how far it is. */
static int play_trace(const char *path, const struct study_progress *progress,
                      const struct trace_listener *listeners, size_t count,
                      struct err *err)
{
    struct trace_reader reader;

    if (trace_reader_open(&reader, path, err)) {
        trace_conclude(listeners, count, err);
        return -1;
    }
    if (progress) {
        reader.progress = progress->tell;
        reader.context = progress->context;
    }
    int rc = trace_play(&reader, listeners, count, err);
    if (progress)
        progress->end(progress->context);
    trace_reader_close(&reader);
    return rc;
}

/* --- collectives ---------------------------------------------------------- */

/* What processes sent each other, until it is priced. */
struct pricing {
    bool wanted;
    struct traffic_pricing how;
    struct cluster cluster;
    struct traffic_log *logs;
    size_t count;
    struct result *result; /* gets the price, and what is not known */
};

static int pricing_init(struct pricing *p, const struct traces_wanted *wanted,
                        size_t traces, struct result *result, struct err *err)
{
    *p = (struct pricing){.wanted = wanted->cluster != NULL,
                          .how = {wanted->quantile, wanted->placement},
                          .result = result};
    if (!p->wanted)
        return 0;
    if (cluster_load(wanted->cluster, &p->cluster, err))
        return -1;
    p->logs = xcalloc(traces + 1, sizeof *p->logs);
    return 0;
}

/* The log in hand is whole, or, with ERR, is not. */
static void log_conclude(void *to, const struct err *err)
{
    struct pricing *p = to;

    if (!err) {
        p->count++;
        return;
    }
    traffic_log_fini(&p->logs[p->count]);
    result_note(p->result, "its collectives are not known: %s", err->text);
}

/* Listens to PROCESS for a log more. */
static struct trace_listener pricing_listen(struct pricing *p, uint32_t process)
{
    struct trace_listener l = traffic_log_init(&p->logs[p->count], process);

    l.conclude = log_conclude;
    l.to = p;
    return l;
}

static void pricing_end(struct pricing *p)
{
    if (!p->wanted)
        return;
    p->result->traffic = traffic_price(p->logs, p->count, &p->cluster, &p->how);
    while (p->count)
        traffic_log_fini(&p->logs[--p->count]);
    free(p->logs);
    cluster_fini(&p->cluster);
}

int traces_price(struct result *result, const struct run *run,
                 const struct traces_wanted *wanted, struct err *err)
{
    struct pricing pricing;

    if (pricing_init(&pricing, wanted, run->count, result, err))
        return -1;
    for (size_t i = 0; i < run->count && pricing.wanted; i++) {
        struct err why = {""};
        const struct trace_listener listener =
            pricing_listen(&pricing, (uint32_t)i);
        play_trace(run->traces[i].path, wanted->progress, &listener, 1, &why);
    }
    pricing_end(&pricing);
    return 0;
}

/* --- a run's traces ------------------------------------------------------- */

/* The first GPU that PROCESS is shown for; NULL: it is not shown. */
static const struct result_device *device_of(const struct result *result,
                                             uint32_t process)
{
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        if (w.device->process == process)
            return w.device;
    return NULL;
}

static void peaks_take(struct result *result, uint32_t process,
                       struct peak *peak)
{
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        if (w.device->process == process && w.device->card < SESSION_DEVICES)
            result_device_take(w.device, &peak->cards[w.device->card]);
}

static struct perfetto_log *events_add(struct result *result, uint32_t process,
                                       unsigned card)
{
    result->events = xreallocarray(result->events, result->event_count + 1,
                                   sizeof *result->events);
    struct result_events *e = &result->events[result->event_count++];
    *e = (struct result_events){.process = process,
                                .log = perfetto_log_create(card),
                                .destroy = perfetto_log_destroy};
    return e->log;
}

/* --- plans and recordings ------------------------------------------------- */

static void plan_add(struct traces *traces, struct traces_plan *plan)
{
    traces->plans = xreallocarray(traces->plans, traces->plan_count + 1,
                                  sizeof *traces->plans);
    traces->plans[traces->plan_count++] = plan;
}

/* What the next plan may keep. */
static size_t kept_left(const struct traces *traces)
{
    size_t left = SIMULATION_KEPT_BYTES;

    for (size_t i = 0; i < traces->plan_count; i++) {
        const struct trace_kept *kept = traces->plans[i]->plan.kept;
        size_t bytes = kept ? trace_kept_bytes(kept) : 0;
        left -= bytes < left ? bytes : left;
    }
    return left;
}

const struct simulation_plan *traces_plan(const struct traces *traces,
                                          uint32_t process)
{
    for (size_t i = 0; i < traces->plan_count; i++)
        if (traces->plans[i]->process == process)
            return &traces->plans[i]->plan;
    return NULL;
}

/* Keeps R, unless that were too much with those before: it is read again then,
 * where it is needed. */
static void recorded_add(struct traces *traces, struct recorded *r)
{
    struct recorded_list *list = &traces->recorded;
    size_t steps = recorded_steps(r);
    bool fits = steps > 0;

    for (size_t i = 0; i < list->count; i++)
        steps += recorded_steps(list->all[i]);
    if (!fits || steps > REPLAY_STEPS) {
        recorded_fini(r);
        free(r);
        return;
    }
    xgrow(&list->all, list->count, &list->capacity, sizeof *list->all);
    list->all[list->count++] = r;
}

void traces_fini(struct traces *traces)
{
    for (size_t i = 0; i < traces->plan_count; i++) {
        simulation_plan_fini(&traces->plans[i]->plan);
        free(traces->plans[i]);
    }
    free(traces->plans);
    for (size_t i = 0; i < traces->recorded.count; i++) {
        recorded_fini(traces->recorded.all[i]);
        free(traces->recorded.all[i]);
    }
    free(traces->recorded.all);
    *traces = (struct traces){.plans = NULL};
}

/* --- passes --------------------------------------------------------------- */

struct reading {
    struct result *result;
    struct traces *traces;
    const struct rundir *dir;
    const struct traces_wanted *wanted;
    struct pricing pricing;
};

/* A pass over the trace of a process that is shown. */
struct pass {
    struct reading *r;
    uint32_t process;
    struct trace_listener listeners[LISTENERS];
    size_t count;
    struct peak_reading peak;
    struct traces_plan *plan;
    struct recorded *recorded;
};

/* CONCLUDE says what becomes of what LISTENER heard. */
static void pass_listen(struct pass *p, struct trace_listener listener,
                        void (*conclude)(void *to, const struct err *err))
{
    listener.conclude = conclude;
    listener.to = p;
    p->listeners[p->count++] = listener;
}

static void peak_conclude(void *to, const struct err *err)
{
    struct pass *p = to;

    if (err)
        result_note(p->r->result, "what was in memory is not known: %s",
                    err->text);
    else
        peaks_take(p->r->result, p->process, &p->peak.peak);
    peak_reading_fini(&p->peak);
}

static void events_conclude(void *to, const struct err *err)
{
    struct result *result = ((struct pass *)to)->r->result;

    if (err)
        result->events[result->event_count - 1].err = *err;
}

static void plan_conclude(void *to, const struct err *err)
{
    struct pass *p = to;

    if (!err) {
        plan_add(p->r->traces, p->plan);
        return;
    }
    simulation_plan_fini(&p->plan->plan);
    free(p->plan);
}

static void recorded_conclude(void *to, const struct err *err)
{
    struct pass *p = to;

    if (!err) {
        recorded_add(p->r->traces, p->recorded);
        return;
    }
    recorded_fini(p->recorded);
    free(p->recorded);
}

static bool is_recorded(const struct traces_wanted *w, uint32_t process,
                        const char *path)
{
    struct stat st;

    return w->recorded || w->recorded_process == process ||
           (!stat(path, &st) && (uint64_t)st.st_size <= w->recorded_most);
}

/* Those that hear a process that is shown. */
static void pass_start(struct pass *p, const char *path)
{
    struct reading *r = p->r;
    const struct traces_wanted *w = r->wanted;
    uint32_t process = p->process;

    pass_listen(p, peak_reading_init(&p->peak), peak_conclude);
    if (w->events)
        pass_listen(
            p,
            perfetto_log_listener(events_add(
                r->result, process, device_of(r->result, process)->card)),
            events_conclude);
    if (w->keep) {
        p->plan = xmalloc(sizeof *p->plan);
        p->plan->process = process;
        pass_listen(
            p,
            simulation_plan_init(&p->plan->plan, w->keep, kept_left(r->traces)),
            plan_conclude);
    }
    if (!is_recorded(w, process, path))
        return;
    p->recorded = xmalloc(sizeof *p->recorded);
    recorded_init(p->recorded, process, path, w->recorded_process == process);
    p->count += recorded_listen(p->recorded, &p->listeners[p->count]);
    p->listeners[p->count - 1].conclude = recorded_conclude;
    p->listeners[p->count - 1].to = p;
}

static void process_play(struct reading *r, uint32_t process)
{
    struct pass p = {.r = r, .process = process};
    struct err err = {""};
    char path[PATH_MAX];

    run_trace_path(r->dir->path, process, path, sizeof path);
    if (device_of(r->result, process))
        pass_start(&p, path);
    if (r->pricing.wanted)
        p.listeners[p.count++] = pricing_listen(&r->pricing, process);
    /* one that was never written, or was taken away, is not damaged */
    if (play_trace(path, r->wanted->progress, p.listeners, p.count, &err) &&
        device_of(r->result, process) && !access(path, F_OK))
        r->result->damaged = true;
}

/* Numbers of processes, each once. */
struct numbers {
    uint32_t *all;
    size_t count, capacity;
};

static void numbers_add(struct numbers *n, uint32_t number)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->all[i] == number)
            return;
    xgrow(&n->all, n->count, &n->capacity, sizeof *n->all);
    n->all[n->count++] = number;
}

/* Those whose traces are to be read: the ones that are shown and, where
 * collectives are to be priced, all others. */
static int numbers_find(struct numbers *n, const struct result *result,
                        const struct rundir *dir, bool all, struct err *err)
{
    const struct run_trace *trace = NULL;
    struct run run = {.count = 0};
    int rc = all ? run_open(&run, dir->path, err) : 0;

    while (!rc && (trace = run_next_process(&run, trace)))
        numbers_add(n, trace->process);
    run_close(&run);
    for (struct result_walk w = {NULL}; result_walk_next(result, &w);)
        numbers_add(n, w.device->process);
    return rc;
}

int traces_read(struct result *result, struct traces *traces,
                const struct rundir *dir, const struct traces_wanted *wanted,
                struct err *err)
{
    struct reading r = {result, traces, dir, wanted, {.wanted = false}};
    struct numbers numbers = {0};

    *traces = (struct traces){.plans = NULL};
    int rc = numbers_find(&numbers, result, dir, wanted->cluster != NULL, err);
    if (!rc)
        rc = pricing_init(&r.pricing, wanted, numbers.count, result, err);
    for (size_t i = 0; !rc && i < numbers.count; i++)
        process_play(&r, numbers.all[i]);
    if (!rc)
        pricing_end(&r.pricing);
    free(numbers.all);
    return rc;
}
