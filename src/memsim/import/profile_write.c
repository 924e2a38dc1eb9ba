/* SPDX-License-Identifier: Apache-2.0
 * Each call that matters becomes records, in the order in which the host
 * called:
 *
 *   an operation that launched       MEASURED, LAUNCH | COPY | SET | COLLECTIVE
 *   ... that waits for another one   STREAM_WAIT before it; EVENT_RECORD
 *                                    behind the other one
 *   ... that has an unexplained gap  MEASURED, HOST_FUNCTION before it
 *   a call that waited               MEASURED, SYNC_EVENT
 *   a call that took memory          the same, of an event that nothing records
 *   a thread that waited for one     JOIN
 *   a range                          RANGE_PUSH, RANGE_POP
 *
 * A call without any of these is a part of its thread's time between records.
 */
#include "memsim/import/profile_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/array_sort.h"
#include "common/base/xmalloc.h"
#include "common/trace/gradient.h"
#include "common/trace/trace_write.h"

#define TRACE_BYTES_MAX (UINT64_C(1) << 40)
#define DOMAIN_PROFILE  1 /* of ranges; NVTX's default domain is 0 */
/* Handles of streams: never the default stream's, as CUPTI numbers that like
 * any other, and whatever waited is found by times. */
#define STREAM_HANDLE(index) (UINT64_C(0x100) + (index))
#define EVENT_HANDLE(op)     (UINT64_C(0x10000) + (op))
/* Of communicators: of a process group by its name, else of a stream. */
#define GROUP_HANDLE(name)   (UINT64_C(0x100000000) + (name))
#define GROUP_ID_BYTES       24

/* In the order of items of one moment. */
enum item_kind {
    ITEM_POP,
    ITEM_PUSH,
    ITEM_GRADIENT, /* before what the script does behind the backward */
    ITEM_JOIN,
    ITEM_OP,
    ITEM_POLL,
    ITEM_WAIT,
    ITEM_HOLD
};

struct item {
    int64_t ns;
    enum item_kind kind;
    uint32_t index; /* of an op, a call or a mark */
};

struct out {
    struct profile *p;
    const struct profile_target *target;
    struct trace_writer writer;
    struct item *items;
    size_t count, capacity;
    int64_t *called_ns; /* of ops: when their call was, put in order */
    bool *waited;       /* of ops: something waits for their end */
    uint32_t *groups;   /* of streams: the name of the process group */
    int64_t *told_ns;   /* of threads: the profiler's time in the records */
    uint64_t begin_ns; /* of the trace's clock: the profile's origin */
    uint64_t last_ns;
};

/* --- items ---------------------------------------------------------------- */

static void item_add(struct out *o, int64_t ns, enum item_kind kind,
                     size_t index)
{
    xgrow(&o->items, o->count, &o->capacity, sizeof *o->items);
    o->items[o->count++] =
        (struct item){.ns = ns, .kind = kind, .index = (uint32_t)index};
}

/* When an operation was called. One without a call follows the one before it
 * on its stream; none is called before that one. */
static void find_called(struct out *o)
{
    const struct profile *p = o->p;

    for (size_t i = 0; i < p->ops_count; i++) {
        const struct profile_op *op = &p->ops[i];
        int64_t ns = op->start_ns - p->latency_ns;

        if (op->call != PROFILE_NONE)
            ns = p->calls[op->call].start_ns;
        else if (op->previous != PROFILE_NONE)
            ns = o->called_ns[op->previous];
        if (op->previous != PROFILE_NONE && ns < o->called_ns[op->previous])
            ns = o->called_ns[op->previous];
        if (op->after != PROFILE_NONE && ns < o->called_ns[op->after])
            ns = o->called_ns[op->after];
        o->called_ns[i] = ns;
    }
}

/* Does the call NAME take memory from the driver, or give it back? That takes
 * its time on any host. */
static bool takes_memory(const char *name)
{
    static const char *const calls[] = {
        "cudaMalloc",  "cudaFree",    "cudaHostAlloc", "cudaFreeHost",
        "cuMemCreate", "cuMemMap",    "cuMemSetAccess", "cuMemUnmap",
        "cuMemRelease"};

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (!strcmp(calls[i], name))
            return true;
    return false;
}

static void add_calls(struct out *o)
{
    const struct profile *p = o->p;

    for (size_t i = 0; i < p->calls_count; i++) {
        const struct profile_call *call = &p->calls[i];

        if (call->join != PROFILE_NONE)
            item_add(o, call->start_ns, ITEM_JOIN, i);
        if (call->waits == PROFILE_NONE) {
            if (takes_memory(p->names[call->name]))
                item_add(o, call->start_ns, ITEM_HOLD, i);
            continue;
        }
        o->waited[call->waits] = true;
        if (call->polled)
            item_add(o, profile_call_end(&p->calls[call->previous]), ITEM_POLL,
                     i);
        else
            item_add(o, call->start_ns, ITEM_WAIT, i);
        /* none waits for what was not called yet */
        struct item *wait = &o->items[o->count - 1];
        if (wait->ns < o->called_ns[call->waits])
            wait->ns = o->called_ns[call->waits];
    }
}

/* A profile without steps is one. */
static void add_whole(struct out *o)
{
    const struct profile *p = o->p;
    int64_t last_ns = 0;

    for (size_t i = 0; i < p->ops_count; i++)
        if (o->called_ns[i] > last_ns)
            last_ns = o->called_ns[i];
    item_add(o, profile_origin(p), ITEM_PUSH, PROFILE_NONE);
    item_add(o, last_ns + 1, ITEM_POP, PROFILE_NONE);
}

static void add_items(struct out *o)
{
    const struct profile *p = o->p;
    size_t steps = 0;

    add_calls(o);
    for (size_t i = 0; i < p->gradients_count; i++)
        item_add(o, p->gradients[i].ns, ITEM_GRADIENT, i);
    for (size_t i = 0; i < p->ops_count; i++) {
        item_add(o, o->called_ns[i], ITEM_OP, i);
        if (p->ops[i].after != PROFILE_NONE)
            o->waited[p->ops[i].after] = true;
    }
    for (size_t i = 0; i < p->marks_count; i++) {
        const struct profile_mark *mark = &p->marks[i];

        if (!profile_is_step(p->names[mark->name]))
            continue; /* the program's other ranges are of no use yet */
        steps++;
        item_add(o, mark->start_ns, ITEM_PUSH, i);
        item_add(o, mark->start_ns + mark->duration_ns, ITEM_POP, i);
    }
    if (!steps)
        add_whole(o);
}

static int compare_items(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    if (x->kind != y->kind)
        return (x->kind > y->kind) - (x->kind < y->kind);
    return (x->index > y->index) - (x->index < y->index);
}

/* --- records -------------------------------------------------------------- */

static void put_bytes(struct out *o, const struct trace_put *what)
{
    struct trace_put put = *what;

    put.time_ns = o->last_ns;
    trace_writer_put(&o->writer, &put);
}

static void record_put(struct out *o, enum trace_kind kind, uint32_t thread,
                       const void *fields, size_t bytes, const char *text)
{
    put_bytes(o, &(struct trace_put){.kind = kind,
                                     .thread = thread,
                                     .fields = fields,
                                     .count = bytes / sizeof(uint64_t),
                                     .text = text,
                                     .text_bytes = text ? strlen(text) : 0});
}

#define PUT(o, thread, KIND, ...)                                              \
    record_put(o, TRACE_##KIND, thread, &(TRACE_STRUCT_##KIND){__VA_ARGS__},   \
               sizeof(TRACE_STRUCT_##KIND), NULL)

static uint64_t trace_ns(const struct out *o, int64_t ns)
{
    return o->begin_ns + (uint64_t)(ns - o->target->origin_ns);
}

static uint32_t name_of(uint32_t name)
{
    return name + 1; /* 0 is no name */
}

/* The ranks of the group of collective AT: a rank that is imported alone knows
 * its others by their number. */
static uint64_t group_ranks(const struct out *o, uint32_t at)
{
    int64_t size = o->p->collectives[at].group_size;

    return o->target->ranks == 1 && size > 0 ? (uint64_t)size
                                             : o->target->ranks;
}

/* The communicator of collective AT, which names its process group. */
static void put_group(struct out *o, uint32_t at)
{
    const struct profile_collective *c = &o->p->collectives[at];
    char text[GROUP_ID_BYTES + 1 + sizeof c->ranks];
    struct trace_communicator comm = {.communicator = GROUP_HANDLE(c->group),
                                      .rank = o->target->rank,
                                      .ranks = group_ranks(o, at)};
    size_t bytes = GROUP_ID_BYTES;

    snprintf(text, GROUP_ID_BYTES + 1, "%-*.*s", GROUP_ID_BYTES, GROUP_ID_BYTES,
             o->p->names[c->group]);
    if (c->ranks.count && c->ranks.count == comm.ranks) {
        memcpy(text + bytes, &c->ranks, sizeof c->ranks);
        bytes += sizeof c->ranks;
        comm.ranges = 1;
        comm.rank = comm.rank < comm.ranks ? comm.rank : 0;
    }
    put_bytes(o, &(struct trace_put){.kind = TRACE_COMMUNICATOR,
                                     .fields = (const void *)&comm,
                                     .count = sizeof comm / sizeof(uint64_t),
                                     .text = text,
                                     .text_bytes = bytes});
}

/* A communicator for each process group that a collective names. */
static void put_groups(struct out *o)
{
    const struct profile *p = o->p;
    bool *known = xcalloc(p->names_count + 1, sizeof *known);

    for (size_t i = 0; i < p->ops_count; i++) {
        uint32_t at = p->ops[i].collective;
        uint32_t group =
            at == PROFILE_NONE ? PROFILE_NONE : p->collectives[at].group;
        if (group == PROFILE_NONE)
            continue;
        o->groups[p->ops[i].stream] = group;
        if (known[group])
            continue;
        known[group] = true;
        put_group(o, at);
    }
    free(known);
}

static void put_head(struct out *o)
{
    const struct profile *p = o->p;
    const struct profile_target *target = o->target;
    struct trace_process process = {.pid = target->rank + 1,
                                    .rank = target->rank,
                                    .local_rank = target->rank,
                                    .world_size = target->ranks};
    struct trace_device device = {.capacity_bytes = target->capacity_bytes,
                                  .card = target->rank};

    record_put(o, TRACE_PROCESS, 0, &process, sizeof process, p->path);
    record_put(o, TRACE_SETTING, 0, NULL, 0,
               p->info.simulated ? PROFILE_SIMULATED : PROFILE_MEASURED);
    record_put(o, TRACE_DEVICE, 0, &device, sizeof device, target->gpu);
    for (size_t i = 0; i < p->names_count; i++) {
        struct trace_name name = {.name = name_of((uint32_t)i)};

        record_put(o, TRACE_NAME, 0, &name, sizeof name, p->names[i]);
    }
    for (size_t i = 0; i < p->streams_count; i++)
        PUT(o, 0, STREAM_CREATE, .stream = STREAM_HANDLE(i), .flags = 1);
    put_groups(o);
}

static void put_copy(struct out *o, uint32_t thread,
                     const struct profile_op *op)
{
    const char *name = o->p->names[op->name];
    enum trace_direction direction =
        strstr(name, "HtoD")   ? TRACE_HOST_TO_DEVICE
        : strstr(name, "DtoH") ? TRACE_DEVICE_TO_HOST
                               : TRACE_DEVICE_TO_DEVICE;

    PUT(o, thread, COPY, .stream = STREAM_HANDLE(op->stream),
        .direction = direction, .bytes = op->bytes,
        .pinned = strstr(name, "Pinned") != NULL);
}

/* A type that c10d names: bytes of an element, and NCCL's number. */
static const struct type {
    const char *name;
    uint64_t bytes, number;
} types[] = {{"Float", 4, 7},
             {"BFloat16", 2, 9},
             {"Half", 2, 6},
             {"Double", 8, 8},
             {"Long", 8, 4},
             {"Int", 4, 2},
             {"Byte", 1, 1},
             {"Char", 1, 0},
             {"Bool", 1, 1},
             {"Float8_e4m3fn", 1, 10},
             {"Float8_e5m2", 1, 11}};

/* NULL: not said, or not known. */
static const struct type *type_of(const struct profile *p,
                                  const struct profile_collective *c)
{
    const char *name = c->type == PROFILE_NONE ? "" : p->names[c->type];

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

static uint64_t collective_bytes(const struct profile *p,
                                 const struct profile_collective *c)
{
    int64_t elements =
        c->in_elements > c->out_elements ? c->in_elements : c->out_elements;
    const struct type *type = type_of(p, c);

    return type && elements > 0 ? (uint64_t)elements * type->bytes : 0;
}

static bool put_collective(struct out *o, uint32_t thread,
                           const struct profile_op *op)
{
    const struct profile *p = o->p;
    struct trace_collective fields = {
        .name = name_of(op->name),
        .stream = STREAM_HANDLE(op->stream),
        .communicator = op->stream + UINT64_C(1),
        .rank = o->target->rank,
        .ranks = o->target->ranks,
    };

    if (o->groups[op->stream] != PROFILE_NONE)
        fields.communicator = GROUP_HANDLE(o->groups[op->stream]);
    if (op->collective != PROFILE_NONE) {
        const struct profile_collective *c = &p->collectives[op->collective];

        if (c->group != PROFILE_NONE)
            fields.communicator = GROUP_HANDLE(c->group);

        const struct type *type = type_of(p, c);
        fields.bytes = collective_bytes(p, c);
        fields.type = type ? type->number : 0;
        if (c->group_size > 0)
            fields.ranks = (uint64_t)c->group_size;
    }
    record_put(o, TRACE_COLLECTIVE, thread, &fields, sizeof fields, NULL);
    return fields.bytes > 0;
}

/* Returns whether the models know its work. */
static bool put_launch(struct out *o, uint32_t thread,
                       const struct profile_op *op)
{
    struct trace_launch launch = {
        .name = name_of(op->name),
        .stream = STREAM_HANDLE(op->stream),
        .grid_x_y = trace_pack(op->grid[0], op->grid[1]),
        .grid_z_block_x = trace_pack(op->grid[2], op->block[0]),
        .block_y_z = trace_pack(op->block[1], op->block[2]),
        .shared_bytes_rule = trace_pack(op->shared_bytes, TRACE_RULE_NONE)};

    struct shapes *shapes = &o->p->shapes;
    const char *name = o->p->names[op->name];
    bool known = (op->work != PROFILE_NONE &&
                  shapes_told(shapes, op->work, name, &launch)) ||
                 shapes_describe(shapes, op->operator, name, &launch);
    record_put(o, TRACE_LAUNCH, thread, &launch, sizeof launch, NULL);
    return known;
}

/* What the profiler took of CALL's thread since the record that said it last.
 */
static uint64_t profiler_ns(struct out *o, const struct profile_call *call)
{
    int64_t ns = call->profiler_ns - o->told_ns[call->thread];

    if (ns <= 0)
        return 0;
    o->told_ns[call->thread] = call->profiler_ns;
    return (uint64_t)ns;
}

static bool is_collective(const struct profile *p, const struct profile_op *op)
{
    return op->category == KINETO_KERNEL &&
           strstr(p->names[op->name], "nccl") != NULL;
}

static uint32_t op_thread(const struct profile *p, const struct profile_op *op)
{
    return op->call == PROFILE_NONE ? 0 : p->calls[op->call].thread;
}

/* Returns whether the models know what the work is. */
static bool put_work(struct out *o, uint32_t thread,
                     const struct profile_op *op)
{
    if (op->category == KINETO_KERNEL)
        return is_collective(o->p, op) ? put_collective(o, thread, op)
                                       : put_launch(o, thread, op);
    if (op->category == KINETO_COPY)
        put_copy(o, thread, op);
    else
        PUT(o, thread, SET, .stream = STREAM_HANDLE(op->stream),
            .bytes = op->bytes);
    return op->bytes > 0;
}

static void put_op(struct out *o, uint32_t index)
{
    const struct profile *p = o->p;
    const struct profile_op *op = &p->ops[index];
    uint32_t thread = op_thread(p, op);
    uint64_t stream = STREAM_HANDLE(op->stream);
    uint64_t latency =
        op->call == PROFILE_NONE ? 0 : (uint64_t)profile_op_latency(p, op);
    uint64_t handover = (uint64_t)profile_op_handover(p, op);
    uint64_t lost =
        op->call == PROFILE_NONE ? 0 : profiler_ns(o, &p->calls[op->call]);

    if (op->after != PROFILE_NONE)
        PUT(o, thread, STREAM_WAIT, .stream = stream,
            .event = EVENT_HANDLE(op->after));
    if (op->gap_ns) {
        PUT(o, thread, MEASURED,
            .start_ns = trace_ns(o, op->start_ns - op->gap_ns),
            .duration_ns = (uint64_t)op->gap_ns, .latency_ns = latency,
            .gap_ns = profile_op_is_exact(op) ? handover : 0,
            .profiler_ns = lost);
        PUT(o, thread, HOST_FUNCTION, .stream = stream);
        lost = 0;
        if (profile_op_is_exact(op))
            handover = 0; /* it is before the gap */
    }
    PUT(o, thread, MEASURED, .start_ns = trace_ns(o, op->start_ns),
        .duration_ns = (uint64_t)op->duration_ns, .latency_ns = latency,
        .gap_ns = handover,
        .family = op->family == PROFILE_NONE ? 0 : name_of(op->family),
        .profiler_ns = lost);
    bool known = put_work(o, thread, op);
    o->p->device_ns += op->duration_ns;
    o->p->shaped_ns += known ? op->duration_ns : 0;
    if (o->waited[index])
        PUT(o, thread, EVENT_RECORD, .stream = stream,
            .event = EVENT_HANDLE(index));
}

/* A call that waited from FROM_NS on; it returned some time after the
 * operation had ended. */
static void put_wait(struct out *o, uint32_t index, int64_t from_ns,
                     int64_t until_ns)
{
    const struct profile_call *call = &o->p->calls[index];
    int64_t ended = profile_op_end(&o->p->ops[call->waits]);

    if (until_ns < from_ns)
        until_ns = from_ns;
    if (ended > until_ns)
        ended = until_ns;
    PUT(o, call->thread, MEASURED, .profiler_ns = profiler_ns(o, call),
        .held_ns = (uint64_t)(until_ns - from_ns),
        .return_ns = (uint64_t)(ended > from_ns ? until_ns - ended
                                                : until_ns - from_ns));
    PUT(o, call->thread, SYNC_EVENT, .event = EVENT_HANDLE(call->waits));
}

/* A call that held its thread, whatever the GPU did. */
static void put_hold(struct out *o, const struct profile_call *call)
{
    PUT(o, call->thread, MEASURED, .profiler_ns = profiler_ns(o, call),
        .held_ns = (uint64_t)call->duration_ns,
        .return_ns = (uint64_t)call->duration_ns);
    PUT(o, call->thread, SYNC_EVENT, .event = EVENT_HANDLE(PROFILE_NONE));
}

static void put_range(struct out *o, const struct item *item)
{
    const struct profile *p = o->p;
    const struct profile_mark *mark =
        item->index == PROFILE_NONE ? NULL : &p->marks[item->index];
    uint32_t thread = mark ? mark->thread : 0;
    struct trace_range_push push = {.domain = DOMAIN_PROFILE};

    if (item->kind == ITEM_POP)
        PUT(o, thread, RANGE_POP, .domain = DOMAIN_PROFILE);
    else
        record_put(o, TRACE_RANGE_PUSH, thread, &push, sizeof push,
                   mark ? p->names[mark->name] : "step (the whole profile)");
}

static void put_gradient(struct out *o, uint32_t index)
{
    const struct profile_gradient *g = &o->p->gradients[index];
    struct trace_mark mark = {.domain = DOMAIN_PROFILE};
    char text[64];

    snprintf(text, sizeof text, TRACE_GRADIENT "%" PRIu64 " %u", g->elements,
             g->bytes);
    record_put(o, TRACE_MARK, g->thread, &mark, sizeof mark, text);
}

/* The profiler's time on CALL's thread before it. */
static int64_t before_ns(const struct out *o, const struct profile_call *call)
{
    return call->previous == PROFILE_NONE
               ? 0
               : o->p->calls[call->previous].profiler_ns;
}

static void put_item(struct out *o, const struct item *item)
{
    const struct profile *p = o->p;
    /* An annotation's index is none of a call. */
    const struct profile_call *call =
        item->index < p->calls_count ? &p->calls[item->index] : NULL;

    o->last_ns = trace_ns(o, item->ns);
    switch (item->kind) {
    case ITEM_POP:
    case ITEM_PUSH:
        put_range(o, item);
        break;
    case ITEM_GRADIENT:
        put_gradient(o, item->index);
        break;
    case ITEM_JOIN:
        o->told_ns[call->thread] = before_ns(o, call);
        PUT(o, call->thread, JOIN, .joined = p->calls[call->join].thread);
        break;
    case ITEM_POLL:
        put_wait(o, item->index, item->ns, call->start_ns);
        break;
    case ITEM_OP:
        put_op(o, item->index);
        break;
    case ITEM_WAIT:
        put_wait(o, item->index, item->ns, profile_call_end(call));
        break;
    case ITEM_HOLD:
        put_hold(o, call);
        break;
    }
}

int64_t profile_origin(const struct profile *p)
{
    int64_t ns = INT64_MAX;

    for (size_t i = 0; i < p->ops_count; i++)
        if (p->ops[i].start_ns < ns)
            ns = p->ops[i].start_ns;
    if (p->calls_count && p->calls[0].start_ns < ns)
        ns = p->calls[0].start_ns;
    if (p->marks_count && p->marks[0].start_ns < ns)
        ns = p->marks[0].start_ns;
    return ns - p->latency_ns;
}

/* The trace's clock begins where its header says. */
static void find_begin(struct out *o)
{
    struct trace_header header;

    if (pread(o->writer.fd, &header, sizeof header, 0) == sizeof header)
        o->begin_ns = header.start_monotonic_ns;
    o->last_ns = o->begin_ns;
}

static void note_kernels(struct out *o)
{
    const struct profile *p = o->p;

    for (size_t i = 0; i < p->ops_count; i++)
        if (p->ops[i].category == KINETO_KERNEL)
            shapes_note(&o->p->shapes, p->ops[i].operator,
                        p->names[p->ops[i].name]);
}

static void write_all(struct out *o)
{
    find_begin(o);
    put_head(o);
    note_kernels(o);
    find_called(o);
    add_items(o);
    array_sort(o->items, o->count, sizeof *o->items, compare_items);
    for (size_t i = 0; i < o->count; i++)
        put_item(o, &o->items[i]);
}

int profile_write(struct profile *p, const struct profile_target *target,
                  struct err *err)
{
    struct out o = {
        .p = p, .target = target, .writer = TRACE_WRITER_INIT};

    if (trace_writer_open(&o.writer, target->path, TRACE_BYTES_MAX, err))
        return -1;
    o.called_ns = xcalloc(p->ops_count + 1, sizeof *o.called_ns);
    o.waited = xcalloc(p->ops_count + 1, sizeof *o.waited);
    o.told_ns = xcalloc(p->threads_count + 1, sizeof *o.told_ns);
    o.groups = xcalloc(p->streams_count + 1, sizeof *o.groups);
    memset(o.groups, 0xff, p->streams_count * sizeof *o.groups);
    write_all(&o);
    bool full = o.writer.end_reason != 0;
    trace_writer_close(&o.writer, TRACE_END_EXIT, 0, o.last_ns);
    free(o.items);
    free(o.called_ns);
    free(o.waited);
    free(o.groups);
    free(o.told_ns);
    if (full)
        return err_set(err, "%s: the disk is full", target->path);
    return 0;
}
