/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/real/calls.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define LATENCY_MOST_NS 50000 /* a work that begins later waited for another */

/* CALLs whose record has not come yet, by thread. */
struct scan {
    struct real_calls *calls;
    const struct device_log *log;
    struct map open; /* index + 1 in calls->all, by thread + 1 */
    struct member {
        uint64_t stream, capture;
    } * members; /* of captures that go on */
    size_t member_count, member_capacity;
};

bool real_is_work(enum trace_kind kind)
{
    switch (kind) {
    case TRACE_LAUNCH:
    case TRACE_GEMM:
    case TRACE_CONVOLUTION:
    case TRACE_ATTENTION:
    case TRACE_LIBRARY_CALL:
    case TRACE_COPY:
    case TRACE_SET:
    case TRACE_COLLECTIVE:
        return true;
    default:
        return false;
    }
}

static uint64_t stream_of(const struct trace_item *item)
{
    if (item->head.kind == TRACE_COPY)
        return trace_as_copy(item)->stream;
    if (item->head.kind == TRACE_SET)
        return trace_as_set(item)->stream;
    const struct trace_work *work = trace_work(item);
    return work ? work->stream : 0;
}

static struct real_capture *capture_of(struct real_calls *calls,
                                       uint64_t number)
{
    struct real_capture *c = map_get(&calls->captures, number);

    if (!c) {
        c = xcalloc(1, sizeof *c);
        map_put(&calls->captures, number, c);
    }
    return c;
}

/* STREAM is captured from now on. */
static void stream_captured(struct scan *s, uint64_t stream, uint64_t capture)
{
    xgrow(&s->members, s->member_count, &s->member_capacity,
          sizeof *s->members);
    s->members[s->member_count++] = (struct member){stream, capture};
    map_put(&s->calls->captured, stream + 1, (void *)(uintptr_t)capture);
}

/* The streams of the capture that ends are not captured any more. */
static void capture_end(struct scan *s, uint64_t capture)
{
    size_t left = 0;

    for (size_t i = 0; i < s->member_count; i++)
        if (s->members[i].capture == capture)
            map_take(&s->calls->captured, s->members[i].stream + 1);
        else
            s->members[left++] = s->members[i];
    s->member_count = left;
}

static void record_open(struct scan *s, const struct trace_item *item)
{
    const struct trace_call *call = trace_as_call(item);
    struct real_calls *calls = s->calls;

    xgrow(&calls->all, calls->count, &calls->capacity, sizeof *calls->all);
    calls->all[calls->count++] = (struct real_record){
        .number = call->number,
        .start_ns = call->start_ns,
        .end_ns = call->end_ns};
    map_put(&calls->by_number, call->number, (void *)(uintptr_t)calls->count);
    map_put(&s->open, item->head.thread + 1, (void *)(uintptr_t)calls->count);
}

static void work_fill(struct real_calls *calls, struct real_record *r,
                      const struct trace_item *item)
{
    uintptr_t capture =
        (uintptr_t)map_get(&calls->captured, stream_of(item) + 1);

    if (capture) {
        r->capture = capture;
        r->place = capture_of(calls, capture)->places++;
        return;
    }
    if (r->count && r->works->row.start_ns > r->start_ns) {
        uint64_t after = r->works->row.start_ns - r->start_ns;
        if (after < calls->latency_ns)
            calls->latency_ns = after;
    }
}

static void graph_fill(struct real_calls *calls, struct real_record *r,
                       const struct trace_item *item)
{
    r->capture = trace_as_graph_launch(item)->capture;
    struct real_capture *c = r->capture ? capture_of(calls, r->capture) : NULL;
    if (c && !c->count) {
        c->works = r->works;
        c->count = r->count;
    }
}

/* ITEM is of the call R. */
static void record_fill(struct scan *s, struct real_record *r,
                        const struct trace_item *item)
{
    r->kind = item->head.kind;
    r->works = device_log_of(s->log, r->number, &r->count);
    for (size_t i = 0; i < r->count; i++)
        r->works[i].taken = true;
    if (r->kind == TRACE_COLLECTIVE)
        r->group = trace_as_collective(item)->group;
    if (real_is_work(r->kind))
        work_fill(s->calls, r, item);
    else if (r->kind == TRACE_GRAPH_LAUNCH)
        graph_fill(s->calls, r, item);
}

static void item_scan(struct scan *s, const struct trace_item *item)
{
    struct real_calls *calls = s->calls;
    uintptr_t open;

    switch (item->head.kind) {
    case TRACE_CALL:
        record_open(s, item);
        return;
    case TRACE_NAME:
        if (trace_as_name(item)->name > calls->name_most)
            calls->name_most = trace_as_name(item)->name;
        return;
    case TRACE_CAPTURE_JOIN:
        stream_captured(s, trace_as_capture_join(item)->stream,
                        trace_as_capture_join(item)->capture);
        return;
    case TRACE_CAPTURE_END:
        capture_end(s, trace_as_capture_end(item)->capture);
        return;
    default:
        open = (uintptr_t)map_take(&s->open, item->head.thread + 1);
        if (open)
            record_fill(s, &calls->all[open - 1], item);
    }
}

/* --- groups of NCCL's ----------------------------------------------------- */

static bool is_nccl(const struct device_work *work)
{
    return work->row.kind == DEVICE_LOG_KERNEL &&
           memmem(work->name, work->row.text_bytes, "nccl", 4);
}

/* The first collective of the group that ended before the call NUMBER, which
 * has no work yet. */
static struct real_record *group_before(const struct real_calls *calls,
                                        uint64_t number)
{
    struct real_record *first = NULL;

    for (size_t i = calls->count; i-- > 0;) {
        struct real_record *r = &calls->all[i];

        if (r->number >= number || r->kind != TRACE_COLLECTIVE || !r->group)
            continue;
        if (first && r->group != first->group)
            break;
        first = r;
    }
    return first && !first->count ? first : NULL;
}

/* A group's kernels are launched by its end, of which there is no record. */
static void groups_fill(struct real_calls *calls, const struct device_log *log)
{
    for (size_t i = 0; i < log->count;) {
        struct device_work *w = &log->works[i];
        size_t count = 1;

        while (i + count < log->count && w->number &&
               log->works[i + count].number == w->number)
            count++;
        struct real_record *r = w->number && !w->taken && is_nccl(w)
                                    ? group_before(calls, w->number)
                                    : NULL;
        if (r) {
            r->works = w;
            r->count = count;
            for (size_t k = 0; k < count; k++)
                w[k].taken = true;
        }
        i += count;
    }
}

/* -------------------------------------------------------------------------- */

int real_calls_read(struct real_calls *calls, const char *path,
                    const struct device_log *log, struct err *err)
{
    struct scan s = {.calls = calls, .log = log};
    struct trace_reader reader;
    struct trace_item item;
    int rc;

    *calls = (struct real_calls){.latency_ns = LATENCY_MOST_NS};
    if (trace_reader_open(&reader, path, err))
        return -1;
    while ((rc = trace_reader_next(&reader, &item, err)) > 0)
        item_scan(&s, &item);
    trace_reader_close(&reader);
    map_fini(&s.open);
    free(s.members);
    groups_fill(calls, log);
    return rc;
}

void real_calls_fini(struct real_calls *calls)
{
    size_t cursor = 0;

    for (void *c; (c = map_next(&calls->captures, &cursor));)
        free(c);
    map_fini(&calls->captures);
    map_fini(&calls->captured);
    map_fini(&calls->by_number);
    free(calls->all);
    *calls = (struct real_calls){0};
}

struct real_record *real_calls_of(const struct real_calls *calls,
                                  uint64_t number)
{
    uintptr_t index = (uintptr_t)map_get(&calls->by_number, number);

    return index ? &calls->all[index - 1] : NULL;
}
