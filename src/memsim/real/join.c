/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/real/join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clamp.h"
#include "common/base/hash.h"
#include "common/base/xmalloc.h"
#include "common/trace/trace_write.h"
#include "memsim/real/calls.h"

#define TRACE_BYTES_MAX (UINT64_C(1) << 40)
#define GAP_NS          1000  /* between works of a stream, at least */
#define GAP_MOST_NS     20000 /* more is a wait */

/* A stream of the program's, as its works come. */
struct stream {
    uint64_t end_ns; /* of the last one */
    bool waits;      /* for an event, since then */
};

struct join {
    const struct device_log *log;
    struct real_calls calls;
    struct trace_writer out;
    struct map open;    /* number of the CALL, by thread + 1 */
    struct map streams; /* struct stream, by handle + 1 */
    struct map handles; /* handle + 1, by CUPTI's number + 1 */
    struct map names;   /* ids of NAMEs that are new, by hash */
    uint64_t last_ns;
    uint32_t thread;
    size_t alone; /* of the log's works: those before were looked at */
    bool marked;  /* it says that it is a real run's */
    struct joined *joined;
};

static void record_put(struct join *j, enum trace_kind kind,
                       const uint64_t *fields, size_t count, const char *text,
                       size_t text_bytes)
{
    trace_writer_put(&j->out, &(struct trace_put){.kind = kind,
                                                  .thread = j->thread,
                                                  .time_ns = j->last_ns,
                                                  .fields = fields,
                                                  .count = count,
                                                  .text = text,
                                                  .text_bytes = text_bytes});
}

#define PUT(j, KIND, ...)                                                      \
    record_put(j, TRACE_##KIND, TRACE_WORDS(KIND, __VA_ARGS__),                \
               TRACE_WORD_COUNT(KIND), NULL, 0)

static struct stream *stream_of(struct join *j, uint64_t handle)
{
    struct stream *s = map_get(&j->streams, handle + 1);

    if (!s) {
        s = xcalloc(1, sizeof *s);
        map_put(&j->streams, handle + 1, s);
    }
    return s;
}

/* --- times ---------------------------------------------------------------- */

/* The COUNT WORKS, one behind the other, of a call made at CALLED_NS. A work
 * begins LATENCY after its call or GAP after the one before it on its stream,
 * whichever is later; one that waited for an event begins when that says. */
static void put_works(struct join *j, const struct device_work *works,
                      size_t count, uint64_t handle, uint64_t called_ns)
{
    struct stream *s = stream_of(j, handle);
    uint64_t start = works[0].row.start_ns, end = works[0].row.end_ns;
    uint64_t latency = j->calls.latency_ns, gap = GAP_NS;

    for (size_t i = 1; i < count; i++)
        end = works[i].row.end_ns > end ? works[i].row.end_ns : end;
    if (s->waits || !start)
        gap = GAP_NS;
    else if (called_ns + latency >= s->end_ns)
        latency = minus_or_zero(start, called_ns);
    else if (minus_or_zero(start, s->end_ns) < GAP_MOST_NS)
        gap = minus_or_zero(start, s->end_ns);
    PUT(j, MEASURED, .start_ns = start,
        .duration_ns = minus_or_zero(end, start), .latency_ns = latency,
        .gap_ns = gap);
    s->end_ns = end;
    s->waits = false;
}

/* Of work that was captured: as long as in the graph's first launch. */
static void put_captured(struct join *j, const struct real_record *r)
{
    const struct real_capture *c = map_get(&j->calls.captures, r->capture);
    uint64_t total = 0, ns;

    if (!c || !c->count)
        return;
    for (size_t i = 0; i < c->count; i++)
        total +=
            minus_or_zero(c->works[i].row.end_ns, c->works[i].row.start_ns);
    if (c->count == c->places)
        ns = minus_or_zero(c->works[r->place].row.end_ns,
                           c->works[r->place].row.start_ns);
    else
        ns = total / c->places;
    PUT(j, MEASURED, .duration_ns = ns, .gap_ns = GAP_NS);
}

/* A graph's launch, whose nodes have their times as captured work: when the
 * first one could begin, and when the last one ended. */
static void put_graph(struct join *j, const struct real_record *r,
                      uint64_t handle)
{
    struct stream *s = stream_of(j, handle);
    uint64_t latency = j->calls.latency_ns;

    if (!r->count)
        return;
    if (!s->waits && r->start_ns + latency >= s->end_ns)
        latency = minus_or_zero(r->works->row.start_ns, r->start_ns);
    PUT(j, MEASURED, .latency_ns = latency, .gap_ns = GAP_NS);
    for (size_t i = 0; i < r->count; i++)
        if (r->works[i].row.end_ns > s->end_ns)
            s->end_ns = r->works[i].row.end_ns;
    s->waits = false;
}

/* The end of the last work of the STREAM, or of all. */
static uint64_t end_of(struct join *j, const struct trace_item *item)
{
    uint64_t end = 0;
    size_t cursor = 0;

    if (item->head.kind == TRACE_SYNC_STREAM)
        return stream_of(j, trace_as_sync_stream(item)->stream)->end_ns;
    for (const struct stream *s; (s = map_next(&j->streams, &cursor));)
        end = s->end_ns > end ? s->end_ns : end;
    return end;
}

/* A call that waited: it returned some time after the work had ended. */
static void put_wait(struct join *j, const struct real_record *r,
                     const struct trace_item *item)
{
    uint64_t end = end_of(j, item);
    uint64_t begin = end > j->last_ns ? end : j->last_ns;
    uint64_t held = minus_or_zero(r->end_ns, j->last_ns);

    PUT(j, MEASURED, .held_ns = held,
        .return_ns = end > r->end_ns ? 0 : minus_or_zero(r->end_ns, begin));
}

/* --- work of no recorded call --------------------------------------------- */

static uint64_t name_of(struct join *j, const char *text, size_t bytes)
{
    uint64_t key = hash_bytes(HASH_START, text, bytes) | 1;
    uintptr_t id = (uintptr_t)map_get(&j->names, key);

    if (id)
        return id;
    id = (uintptr_t)++j->calls.name_most;
    map_put(&j->names, key, (void *)id);
    record_put(j, TRACE_NAME, TRACE_WORDS(NAME, .name = id),
               TRACE_WORD_COUNT(NAME), text, bytes);
    return id;
}

/* CUpti_ActivityMemcpyKind: 1 to the device, 2 from it, 8 within it. */
static uint64_t direction_of(uint32_t copy_kind)
{
    return copy_kind == 1   ? TRACE_HOST_TO_DEVICE
           : copy_kind == 2 ? TRACE_DEVICE_TO_HOST
                            : TRACE_DEVICE_TO_DEVICE;
}

static void put_alone(struct join *j, const struct device_work *w)
{
    const struct device_log_row *row = &w->row;
    uintptr_t handle = (uintptr_t)map_get(&j->handles, row->stream + 1);
    uint64_t stream = handle ? handle - 1 : 0;
    uint64_t name = row->kind == DEVICE_LOG_KERNEL
                        ? name_of(j, w->name, row->text_bytes)
                        : 0;

    j->joined->alone++;
    put_works(j, w, 1, stream,
              minus_or_zero(row->start_ns, j->calls.latency_ns));
    if (row->kind == DEVICE_LOG_COPY)
        PUT(j, COPY, .device = row->device, .stream = stream,
            .direction = direction_of(row->copy_kind), .bytes = row->bytes);
    else if (row->kind == DEVICE_LOG_SET)
        PUT(j, SET, .device = row->device, .stream = stream,
            .bytes = row->bytes);
    else
        PUT(j, LAUNCH, .name = name, .device = row->device, .stream = stream,
            .grid_x_y = trace_pack(row->grid[0], row->grid[1]),
            .grid_z_block_x = trace_pack(row->grid[2], row->block[0]),
            .block_y_z = trace_pack(row->block[1], row->block[2]),
            .shared_bytes_rule =
                trace_pack(row->shared_bytes, TRACE_RULE_NONE));
}

/* Those that no record has, of calls before the call NUMBER. */
static void put_alone_before(struct join *j, uint64_t number)
{
    for (; j->alone < j->log->count; j->alone++) {
        const struct device_work *w = &j->log->works[j->alone];

        if (w->before >= number)
            return;
        if (!w->taken)
            put_alone(j, w);
    }
}

/* --- records -------------------------------------------------------------- */

static uint64_t handle_of(const struct trace_item *item)
{
    const struct trace_work *work = trace_work(item);

    if (item->head.kind == TRACE_COPY)
        return trace_as_copy(item)->stream;
    if (item->head.kind == TRACE_SET)
        return trace_as_set(item)->stream;
    return work ? work->stream : 0;
}

static void put_work(struct join *j, const struct real_record *r,
                     const struct trace_item *item)
{
    uint64_t handle = handle_of(item);

    if (r->capture) {
        put_captured(j, r);
    } else if (r->count) {
        map_put(&j->handles, r->works->row.stream + 1,
                (void *)(uintptr_t)(handle + 1));
        put_works(j, r->works, r->count, handle, r->start_ns);
    } else {
        j->joined->untimed++;
    }
}

static void put_times(struct join *j, const struct real_record *r,
                      const struct trace_item *item)
{
    switch (item->head.kind) {
    case TRACE_SYNC_STREAM:
    case TRACE_SYNC_DEVICE:
    case TRACE_SYNC_EVENT:
        put_wait(j, r, item);
        break;
    case TRACE_STREAM_WAIT:
        stream_of(j, trace_as_stream_wait(item)->stream)->waits = true;
        break;
    case TRACE_GRAPH_LAUNCH:
        put_graph(j, r, trace_as_graph_launch(item)->stream);
        break;
    default:
        if (real_is_work(item->head.kind))
            put_work(j, r, item);
    }
}

static void put_item(struct join *j, const struct trace_item *item)
{
    record_put(j, item->head.kind, item->fields, item->head.fields, item->text,
               item->head.text_bytes);
    if (!j->marked && item->head.kind == TRACE_PROCESS) {
        record_put(j, TRACE_SETTING, NULL, 0, TRACE_REAL, strlen(TRACE_REAL));
        j->marked = true;
    }
}

static void record_take(struct join *j, const struct trace_item *item)
{
    uintptr_t number;

    j->thread = item->head.thread;
    if (item->head.kind == TRACE_CALL) {
        map_put(&j->open, j->thread + 1,
                (void *)(uintptr_t)trace_as_call(item)->number);
        return;
    }
    if (item->head.kind == TRACE_END)
        put_alone_before(j, UINT64_MAX);
    number = item->head.kind == TRACE_NAME
                 ? 0
                 : (uintptr_t)map_take(&j->open, j->thread + 1);
    const struct real_record *r =
        number ? real_calls_of(&j->calls, number) : NULL;
    uint64_t ns = r ? r->start_ns : item->head.time_ns;
    j->last_ns = ns > j->last_ns ? ns : j->last_ns;
    if (r) {
        put_alone_before(j, number);
        put_times(j, r, item);
    }
    if (item->head.kind != TRACE_END)
        put_item(j, item);
}

/* --- files ---------------------------------------------------------------- */

/* The new trace has the clock and the process of the old one. */
static int header_copy(const struct trace_reader *from,
                       const struct trace_writer *to)
{
    return pwrite(to->fd, &from->header, sizeof from->header, 0) ==
                   (ssize_t)sizeof from->header
               ? 0
               : -1;
}

static int trace_copy(struct join *j, const char *path, const char *made,
                      struct err *err)
{
    struct trace_reader reader;
    struct trace_item item;
    struct trace_end end = {.reason = TRACE_END_LIMIT};
    bool ended = false;
    int rc;

    if (trace_reader_open(&reader, path, err))
        return -1;
    if (trace_writer_open(&j->out, made, TRACE_BYTES_MAX, err)) {
        trace_reader_close(&reader);
        return -1;
    }
    header_copy(&reader, &j->out);
    while ((rc = trace_reader_next(&reader, &item, err)) > 0) {
        record_take(j, &item);
        if (item.head.kind == TRACE_END) {
            end = *trace_as_end(&item);
            ended = true;
        }
    }
    trace_reader_close(&reader);
    if (!ended)
        put_alone_before(j, UINT64_MAX);
    if (ended && end.reason == TRACE_END_EXIT)
        trace_writer_exit(&j->out, (uint32_t)end.status, j->thread, j->last_ns);
    else if (ended)
        trace_writer_close(&j->out, (enum trace_end_reason)end.reason,
                           j->thread, j->last_ns);
    else
        trace_writer_abandon(&j->out); /* it was killed: as it was */
    return rc;
}

static void join_fini(struct join *j)
{
    size_t cursor = 0;

    for (void *s; (s = map_next(&j->streams, &cursor));)
        free(s);
    map_fini(&j->streams);
    map_fini(&j->handles);
    map_fini(&j->names);
    map_fini(&j->open);
    real_calls_fini(&j->calls);
}

static int replace_trace(struct join *j, const char *path, struct err *err)
{
    char *made = xasprintf("%s.joined", path);
    int rc = real_calls_read(&j->calls, path, j->log, err);

    unlink(made);
    if (!rc)
        rc = trace_copy(j, path, made, err);
    if (!rc && rename(made, path))
        rc = err_set(err, "%s: %s", path, strerror(errno));
    if (rc)
        unlink(made);
    free(made);
    return rc;
}

int real_join(const char *path, const char *log_path, struct joined *joined,
              struct err *err)
{
    struct device_log log;
    struct joined these = {0};

    if (device_log_read(&log, log_path, err))
        return -1;
    struct join j = {.log = &log, .joined = &these, .out = TRACE_WRITER_INIT};
    int rc = log.count ? replace_trace(&j, path, err) : 0;
    if (!rc) {
        joined->works += log.count;
        joined->lost += log.lost;
        joined->alone += these.alone;
        joined->untimed += these.untimed;
        unlink(log_path);
    }
    join_fini(&j);
    device_log_fini(&log);
    return rc;
}
