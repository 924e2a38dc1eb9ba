/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/op_trace.h"

#include <string.h>

#include "common/base/xmalloc.h"

#define THREADS_MAX 4096
#define DEPTH_MAX   64 /* modules within each other that are kept */

/* A captured operation, with what it points to. */
struct node {
    struct op op;
    struct op_part *parts;
    size_t part_count, part_capacity;
    union {
        uint64_t fields[TRACE_FIELDS_MAX];
        struct trace_collective collective;
    };
    char *text;
};

struct capture {
    struct node *nodes;
    size_t count, capacity;
    uint64_t number;
    uint64_t origin; /* the stream that it began on */
    bool begun, ended;
};

struct place { /* of a thread */
    uint32_t open[DEPTH_MAX];
    uint32_t depth;
    uint32_t module, operator;
};

struct op_trace {
    op_take *take;
    void *context;
    struct trace_names names;
    struct map streams;   /* struct capture by stream_key */
    struct map captures;  /* struct capture by number */
    struct map sequences; /* of communicators: next + 1 */
    struct place places[THREADS_MAX];
    uint32_t phase;
    struct node held; /* sends and receives of a group that goes on */
    bool holds;
    uint64_t sent_bytes, received_bytes;
    struct trace_measured measured; /* of the operation that follows */
    bool is_measured;
};

struct op_trace *op_trace_create(op_take *take, void *context)
{
    struct op_trace *t = xcalloc(1, sizeof *t);

    t->take = take;
    t->context = context;
    return t;
}

const struct trace_names *op_trace_names(const struct op_trace *t)
{
    return &t->names;
}

struct trace_names op_trace_names_take(struct op_trace *t)
{
    struct trace_names names = t->names;

    t->names = (struct trace_names){0};
    return names;
}

static uint64_t stream_key(uint64_t device, uint64_t stream)
{
    return stream ^ device << 56; /* addresses have 48 bits */
}

static uint32_t place_index(uint32_t thread)
{
    return thread < THREADS_MAX ? thread : THREADS_MAX - 1;
}

static struct place *place_of(struct op_trace *t, uint32_t thread)
{
    return &t->places[place_index(thread)];
}

/* --- nodes ---------------------------------------------------------------- */

static void node_part(struct node *n, const struct op_part *part)
{
    xgrow(&n->parts, n->part_count, &n->part_capacity, sizeof *n->parts);
    n->parts[n->part_count++] = *part;
}

/* N is zeroed, or was set before. */
static void node_set(struct node *n, const struct op *op)
{
    n->op = *op;
    n->part_count = 0;
    for (uint32_t i = 0; i < op->part_count; i++)
        node_part(n, &op->parts[i]);
    memset(n->fields, 0, sizeof n->fields);
    memcpy(n->fields, op->fields, op->field_count * sizeof *n->fields);
    n->text = NULL;
    if (op->text_bytes) {
        n->text = xmalloc(op->text_bytes);
        memcpy(n->text, op->text, op->text_bytes);
    }
}

static void node_fini(struct node *n)
{
    xfree(n->text);
    xfree(n->parts);
}

/* NODE's operation; its pointers are set here, as nodes move. */
static struct op node_op(const struct node *n)
{
    struct op op = n->op;

    op.fields = n->fields;
    op.text = n->text;
    op.parts = n->parts;
    op.part_count = (uint32_t)n->part_count;
    return op;
}

static struct capture *capture_get(struct op_trace *t, uint64_t number)
{
    struct capture *c = map_get(&t->captures, number);

    if (!c) {
        c = xcalloc(1, sizeof *c);
        c->number = number;
        map_put(&t->captures, number, c);
    }
    return c;
}

/* The capture that STREAM is in, or NULL. */
static struct capture *capture_of(const struct op_trace *t, uint64_t device,
                                  uint64_t stream)
{
    struct capture *c = map_get(&t->streams, stream_key(device, stream));

    return c && !c->ended ? c : NULL;
}

static void on_capture_join(struct op_trace *t, const struct trace_item *item)
{
    const struct trace_capture_join *joined = trace_as_capture_join(item);
    struct capture *c = capture_get(t, joined->capture);

    if (!c->begun)
        c->origin = joined->stream;
    c->begun = true;
    map_put(&t->streams, stream_key(joined->device, joined->stream), c);
}

/* --- what is at work ------------------------------------------------------ */

static void on_enter(struct op_trace *t, const struct trace_item *item)
{
    struct place *p = place_of(t, item->head.thread);

    p->module = (uint32_t)trace_as_module_enter(item)->module;
    p->operator= 0;
    if (p->depth < DEPTH_MAX)
        p->open[p->depth] = p->module;
    p->depth++;
}

static uint32_t place_top(const struct place *p)
{
    if (!p->depth)
        return 0;
    return p->open[(p->depth < DEPTH_MAX ? p->depth : DEPTH_MAX) - 1];
}

/* An exception leaves several modules with the outermost one's record. */
static void on_leave(struct op_trace *t, const struct trace_item *item)
{
    struct place *p = place_of(t, item->head.thread);
    uint32_t module = (uint32_t)trace_as_module_leave(item)->module;
    uint32_t at = p->depth;

    while (at && at <= DEPTH_MAX && p->open[at - 1] != module)
        at--;
    if (at)
        p->depth = at - 1;
    p->module = place_top(p);
    p->operator= 0;
}

static void on_block_alloc(struct op_trace *t, const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    struct place *p = place_of(t, item->head.thread);

    p->module = (uint32_t)alloc->module;
    p->operator= (uint32_t)alloc->operator;
}

static void on_phase(struct op_trace *t, const struct trace_item *item)
{
    struct place *p = place_of(t, item->head.thread);

    t->phase = (uint32_t)trace_as_phase(item)->phase;
    p->module = place_top(p);
    p->operator= 0;
}

/* --- operations ----------------------------------------------------------- */

/* What an imported profile measured of OP. */
static void op_measure(struct op_trace *t, struct op *op)
{
    const struct trace_measured *m = &t->measured;

    if (!t->is_measured)
        return;
    t->is_measured = false;
    op->measured = true;
    op->start_ns = m->start_ns;
    op->duration_ns = m->duration_ns;
    op->latency_ns = m->latency_ns;
    op->gap_ns = m->gap_ns;
    op->held_ns = m->held_ns;
    op->return_ns = m->return_ns;
    op->family = (uint32_t)m->family;
    op->profiler_ns = m->profiler_ns;
}

/* OP, of which the record's fields are known, as of ITEM's time and place. */
static void op_place(const struct op_trace *t, const struct trace_item *item,
                     struct op *op)
{
    const struct place *p = &t->places[place_index(item->head.thread)];

    op->thread = item->head.thread;
    op->host_ns = item->head.time_ns;
    op->module = p->module;
    op->operator= p->operator;
    op->phase = t->phase;
    op->field_count = item->head.fields;
    op->text = item->head.text_bytes ? item->text : NULL;
    op->text_bytes = item->head.text_bytes;
}

/* A collective's place among those of its communicator. */
static void op_sequence(struct op_trace *t, struct op *op)
{
    uint64_t comm;
    uintptr_t next;

    if (op->kind != OP_COLLECTIVE)
        return;
    comm = op_as_collective(op)->communicator;
    next = (uintptr_t)map_get(&t->sequences, comm);
    op->sequence = next ? next - 1 : 0;
    map_put(&t->sequences, comm, (void *)(op->sequence + 2));
}

static void op_give(struct op_trace *t, struct op *op)
{
    op_sequence(t, op);
    t->take(t->context, op);
}

static void graph_launch(struct op_trace *t, const struct op *launch)
{
    const struct trace_graph_launch *l = op_as_graph_launch(launch);
    uint64_t number = l->capture;
    const struct capture *c = map_get(&t->captures, number);
    uint64_t mark = OP_GRAPH_HANDLE | l->exec << 8;

    for (size_t i = 0; c && i < c->count; i++) {
        struct op op = node_op(&c->nodes[i]);
        op.stream = op.stream == c->origin ? launch->stream : op.stream ^ mark;
        op.event = op.event ? op.event ^ mark : 0;
        op.device = launch->device;
        op.thread = launch->thread;
        op.host_ns = launch->host_ns;
        op.phase = launch->phase;
        op.capture = number;
        if (launch->measured) /* on a GPU: when it could begin */
            op.latency_ns = launch->latency_ns;
        op_give(t, &op);
    }
}

/* OP is carried out now, or becomes a node. */
static void op_route(struct op_trace *t, struct op *op)
{
    struct capture *c = capture_of(t, op->device, op->stream);

    if (c && op->record != TRACE_SYNC_EVENT) {
        xgrow(&c->nodes, c->count, &c->capacity, sizeof *c->nodes);
        c->nodes[c->count] = (struct node){.text = NULL};
        node_set(&c->nodes[c->count++], op);
        return;
    }
    op_give(t, op);
    if (op->kind == OP_GRAPH_LAUNCH)
        graph_launch(t, op);
}

/* --- groups of sends and receives ----------------------------------------- */

static bool is_exchange(const struct op_trace *t, const struct op *op)
{
    const char *name;

    if (op->kind != OP_COLLECTIVE || !op_as_collective(op)->group)
        return false;
    name = trace_names_get(&t->names, op->name);
    return !strcmp(name, "ncclSend") || !strcmp(name, "ncclRecv");
}

static void held_release(struct op_trace *t)
{
    if (!t->holds)
        return;
    t->holds = false;
    t->held.collective.bytes =
        t->sent_bytes > t->received_bytes ? t->sent_bytes : t->received_bytes;
    struct op op = node_op(&t->held);
    op_route(t, &op);
}

static void held_add(struct op_trace *t, const struct op *op)
{
    const struct trace_collective *call = op_as_collective(op);
    const struct trace_collective *held = &t->held.collective;

    if (!t->holds || held->group != call->group ||
        held->communicator != call->communicator ||
        t->held.op.thread != op->thread) {
        held_release(t);
        node_set(&t->held, op);
        t->holds = true;
        t->sent_bytes = t->received_bytes = 0;
    }
    *(call->receive ? &t->received_bytes : &t->sent_bytes) += call->bytes;
    node_part(&t->held, &(struct op_part){.peer = (uint32_t)call->root,
                                          .receive = call->receive != 0,
                                          .bytes = call->bytes});
}

/* May the group of sends and receives that is held go on behind OP? PyTorch
 * lets NCCL's stream wait for the program's before each call of a group; what
 * is recorded on NCCL's stream comes behind the group. */
static bool is_within_group(const struct op_trace *t, const struct op *op)
{
    switch (op->kind) {
    case OP_STREAM_WAIT:
        return op->stream == t->held.op.stream;
    case OP_EVENT_RECORD:
        return op->stream != t->held.op.stream;
    default:
        return false;
    }
}

/* --- records -------------------------------------------------------------- */

static void on_op(struct op_trace *t, const struct trace_item *item,
                  struct op *op)
{
    op_place(t, item, op);
    op_measure(t, op);
    if (op->kind == OP_HOST_JOIN)
        op->joined = (uint32_t)trace_as_join(item)->joined;
    if (is_exchange(t, op)) {
        held_add(t, op);
        return;
    }
    if (t->holds && t->held.op.thread == op->thread &&
        !is_within_group(t, op))
        held_release(t);
    op_route(t, op);
}

void op_trace_add(struct op_trace *t, const struct trace_item *item)
{
    struct op op = op_of_record((enum trace_kind)item->head.kind, item->fields);

    if (op.kind) {
        on_op(t, item, &op);
        return;
    }
    switch (item->head.kind) {
    case TRACE_NAME:
        trace_names_add(&t->names, item);
        break;
    case TRACE_MEASURED:
        t->measured = *trace_as_measured(item);
        t->is_measured = true;
        break;
    case TRACE_BLOCK_ALLOC:
        on_block_alloc(t, item);
        break;
    case TRACE_MODULE_ENTER:
        on_enter(t, item);
        break;
    case TRACE_MODULE_LEAVE:
        on_leave(t, item);
        break;
    case TRACE_PHASE:
        held_release(t);
        on_phase(t, item);
        break;
    case TRACE_CAPTURE_JOIN:
        on_capture_join(t, item);
        break;
    case TRACE_CAPTURE_END:
        held_release(t);
        capture_get(t, trace_as_capture_end(item)->capture)->ended = true;
        break;
    default:
        break;
    }
}

void op_trace_end(struct op_trace *t)
{
    held_release(t);
}

void op_trace_destroy(struct op_trace *t)
{
    size_t cursor = 0;

    for (struct capture *c; (c = map_next(&t->captures, &cursor));) {
        for (size_t i = 0; i < c->count; i++)
            node_fini(&c->nodes[i]);
        xfree(c->nodes);
        xfree(c);
    }
    node_fini(&t->held);
    map_fini(&t->captures);
    map_fini(&t->streams);
    map_fini(&t->sequences);
    trace_names_fini(&t->names);
    xfree(t);
}
