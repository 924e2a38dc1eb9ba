/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/stream_capture.h"

#include <stdatomic.h>
#include <string.h>

#include "capture/core/torch/torch.h"
#include "capture/core/memory/device.h"
#include "capture/core/work/graph.h"
#include "capture/core/base/handle.h"
#include "capture/core/base/lock.h"
#include "capture/core/diagnose/misuse.h"
#include "capture/core/run/record.h"
#include "capture/core/work/stream.h"
#include "common/trace/op.h"

#define CAPTURES_MAX 32 /* at one time */

/* One stream's part. Its clock says of every stream of the capture how many of
 * that one's nodes come before whatever this one is given next. */
struct member {
    struct stream *stream;
    uint64_t handle;
    uint32_t clock[CAPTURE_STREAMS];
    uint32_t leaf_count;
    struct graph_node *leaves[CAPTURE_LEAVES];
};

static struct capture {
    uint64_t id; /* 0: unused */
    uint64_t graph;
    enum capture_status status;
    enum capture_mode mode;
    uint32_t thread;
    bool blocking; /* it began in a stream that the legacy one waits for */
    uint32_t member_count;
    struct member members[CAPTURE_STREAMS];
} captures[CAPTURES_MAX];

_Atomic uint32_t capture_count;
static _Thread_local enum capture_mode thread_mode;

static struct capture *capture_of(const struct stream *stream)
{
    return stream && stream->capture ? &captures[stream->capture - 1] : NULL;
}

static struct member *member_of(const struct stream *stream)
{
    return &captures[stream->capture - 1].members[stream->capture_member];
}

static struct stream *stream_find(uint64_t handle)
{
    return memsim_handle_get(HANDLE_STREAM, (void *)handle);
}

static int invalidate_capture(struct capture *capture, int code)
{
    capture->status = CAPTURE_INVALIDATED;
    return code;
}

static torch_fresh_block block_fresh;

static bool capture_join(struct capture *capture, struct stream *stream,
                         uint64_t handle)
{
    if (capture->member_count == CAPTURE_STREAMS)
        return false;
    struct member *member = &capture->members[capture->member_count];
    memset(member, 0, sizeof *member);
    member->stream = stream;
    member->handle = handle;
    stream->capture = (uint32_t)(capture - captures) + 1;
    stream->capture_member = capture->member_count++;
    RECORD(CAPTURE_JOIN, .device = (uint64_t)stream->device, .stream = handle,
           .capture = capture->id);
    return true;
}

static int begin_capture(struct stream *stream, uint64_t handle,
                         enum capture_mode mode, uint64_t graph)
{
    struct capture *capture = captures;

    while (capture < captures + CAPTURES_MAX && capture->id)
        capture++;
    if (stream->capture || capture == captures + CAPTURES_MAX)
        return CORE_ILLEGAL_STATE;
    capture->id = memsim_graph_get(graph)->id;
    capture->graph = graph;
    capture->status = CAPTURE_ACTIVE;
    capture->mode = mode;
    capture->thread = record_thread();
    capture->blocking = !(stream->flags & STREAM_NON_BLOCKING);
    capture->member_count = 0;
    capture_join(capture, stream, handle);
    torch_fresh = block_fresh;
    atomic_fetch_add(&capture_count, 1);
    return CORE_OK;
}

int memsim_capture_begin(uint64_t handle, enum capture_mode mode,
                         uint64_t graph)
{
    struct stream *stream = stream_find(handle);
    uint64_t into = graph;

    if (!stream) /* the default streams cannot be captured */
        return handle <= 2 ? CORE_CAPTURE_UNSUPPORTED
                           : misuse_handle(HANDLE_STREAM, handle);
    if (mode > CAPTURE_RELAXED || (graph && !memsim_graph_get(graph)))
        return CORE_INVALID_VALUE;
    int rc = graph ? CORE_OK : memsim_graph_create(false, &into);
    if (rc)
        return rc;
    core_lock(LOCK_GRAPH);
    rc = begin_capture(stream, handle, mode, into);
    core_unlock(LOCK_GRAPH);
    if (rc && !graph)
        memsim_graph_destroy(into);
    return rc;
}

/* Whether all work of the capture comes before the end of stream 0. */
static bool is_joined(const struct capture *capture)
{
    const struct member *origin = &capture->members[0];

    for (uint32_t i = 1; i < capture->member_count; i++)
        if (origin->clock[i] < capture->members[i].clock[i])
            return false;
    return true;
}

static int end_status(const struct capture *capture,
                      const struct stream *stream)
{
    if (capture->status == CAPTURE_INVALIDATED)
        return CORE_CAPTURE_INVALIDATED;
    if (capture->members[0].stream != stream)
        return CORE_CAPTURE_UNMATCHED;
    if (capture->mode != CAPTURE_RELAXED && capture->thread != record_thread())
        return CORE_CAPTURE_WRONG_THREAD;
    return is_joined(capture) ? CORE_OK : CORE_CAPTURE_UNJOINED;
}

static void capture_finish(struct capture *capture)
{
    for (uint32_t i = 0; i < capture->member_count; i++)
        if (capture->members[i].stream)
            capture->members[i].stream->capture = 0;
    RECORD(CAPTURE_END, .capture = capture->id,
           .whole = capture->status == CAPTURE_ACTIVE);
    capture->id = 0;
    if (atomic_fetch_sub(&capture_count, 1) == 1)
        torch_fresh = NULL;
}

int memsim_capture_end(uint64_t handle, uint64_t *graph)
{
    struct stream *stream = stream_find(handle);

    *graph = 0;
    if (!stream)
        return handle <= 2 ? CORE_ILLEGAL_STATE
                           : misuse_handle(HANDLE_STREAM, handle);
    core_lock(LOCK_GRAPH);
    struct capture *capture = capture_of(stream);
    int rc = capture ? end_status(capture, stream) : CORE_ILLEGAL_STATE;
    uint64_t made = capture ? capture->graph : 0;
    bool over = capture && rc != CORE_CAPTURE_WRONG_THREAD;
    if (over) {
        capture->status = rc ? CAPTURE_INVALIDATED : CAPTURE_ACTIVE;
        capture_finish(capture);
    }
    core_unlock(LOCK_GRAPH);
    if (!rc)
        *graph = made;
    else if (over)
        memsim_graph_destroy(made);
    return rc;
}

int memsim_capture_info(uint64_t handle, struct capture_info *info)
{
    const struct stream *stream = stream_find(handle);
    const struct capture *capture = capture_of(stream);

    *info = (struct capture_info){.status = CAPTURE_NONE};
    if (!stream && handle > 2)
        return misuse_handle(HANDLE_STREAM, handle);
    if (!stream && handle < 2)
        return capture_admits(NULL);
    if (capture) {
        const struct member *member = member_of(stream);

        info->status = capture->status;
        info->id = capture->id;
        info->graph = capture->graph;
        info->leaf_count = member->leaf_count;
        info->leaves = member->leaves;
    }
    return CORE_OK;
}

static void leaf_add(struct member *member, struct graph_node *node)
{
    for (uint32_t i = 0; i < member->leaf_count; i++)
        if (member->leaves[i] == node)
            return;
    if (member->leaf_count < CAPTURE_LEAVES)
        member->leaves[member->leaf_count++] = node;
}

int memsim_capture_depend(uint64_t handle, const uint64_t *nodes, size_t count,
                          bool set)
{
    struct stream *stream = stream_find(handle);

    if (!capture_of(stream))
        return CORE_ILLEGAL_STATE;
    for (size_t i = 0; i < count; i++)
        if (!memsim_graph_node_get(nodes[i]))
            return CORE_INVALID_VALUE;
    core_lock(LOCK_GRAPH);
    struct member *member = member_of(stream);
    if (set)
        member->leaf_count = 0;
    for (size_t i = 0; i < count; i++)
        leaf_add(member, (struct graph_node *)nodes[i]);
    core_unlock(LOCK_GRAPH);
    return CORE_OK;
}

int memsim_capture_exchange_mode(int *mode)
{
    enum capture_mode old = thread_mode;

    if (*mode < 0 || *mode > CAPTURE_RELAXED)
        return CORE_INVALID_VALUE;
    thread_mode = (enum capture_mode) * mode;
    *mode = (int)old;
    return CORE_OK;
}

/* cudaThreadExchangeStreamCaptureMode: a thread's own captures forbid unless
 * begun relaxed, another's only when both it and this thread are global. */
static bool capture_forbids(const struct capture *capture)
{
    if (capture->thread == record_thread())
        return capture->mode != CAPTURE_RELAXED;
    return capture->mode == CAPTURE_GLOBAL && thread_mode == CAPTURE_GLOBAL;
}

int memsim_capture_forbids(void)
{
    int rc = CORE_OK;

    if (!capture_is_on() || thread_mode == CAPTURE_RELAXED)
        return CORE_OK;
    core_lock(LOCK_GRAPH);
    for (struct capture *c = captures; c < captures + CAPTURES_MAX; c++)
        if (c->id && capture_forbids(c))
            rc = invalidate_capture(c, CORE_CAPTURE_UNSUPPORTED);
    core_unlock(LOCK_GRAPH);
    return rc;
}

int capture_asks_event(const struct event *event)
{
    if (!event->mark.capture)
        return CORE_OK;
    core_lock(LOCK_GRAPH);
    for (struct capture *c = captures; c < captures + CAPTURES_MAX; c++)
        if (c->id == event->mark.capture)
            invalidate_capture(c, CORE_CAPTURED_EVENT);
    core_unlock(LOCK_GRAPH);
    return CORE_CAPTURED_EVENT;
}

bool memsim_capture_holds(uint64_t handle)
{
    return capture_is_on() && capture_of(stream_find(handle));
}

/* The type of the node that OP becomes; false where it becomes none. */
static bool node_type_of(enum op_kind kind, enum graph_node_type *type)
{
    *type = GRAPH_KERNEL;
    switch (kind) {
    case OP_LAUNCH:
    case OP_GEMM:
    case OP_CONVOLUTION:
    case OP_ATTENTION:
    case OP_LIBRARY_CALL:
    case OP_COLLECTIVE:
        return true;
    case OP_COPY:
        *type = GRAPH_COPY;
        return true;
    case OP_SET:
        *type = GRAPH_SET;
        return true;
    case OP_HOST_FUNCTION:
        *type = GRAPH_HOST;
        return true;
    case OP_GRAPH_LAUNCH:
        *type = GRAPH_CHILD;
        return true;
    default:
        return false;
    }
}

/* With LOCK_GRAPH held: what was captured since STREAM's last node is the new
 * one's. */
static void node_capture(struct stream *stream, enum graph_node_type type)
{
    struct capture *capture = capture_of(stream);
    struct graph_body *body = capture ? memsim_graph_get(capture->graph) : NULL;

    if (!body)
        return;
    struct member *member = member_of(stream);
    struct graph_node *node =
        graph_node_add(body, type, member->leaves, member->leaf_count);
    member->clock[stream->capture_member]++;
    member->leaf_count = 0;
    if (node) {
        leaf_add(member, node);
        graph_steps_claim(&body->steps, node->number);
    }
}

bool capture_work(const struct op *op)
{
    struct stream *stream = stream_find(op->stream);
    enum graph_node_type type;

    if (!capture_of(stream))
        return false;
    if (!node_type_of(op->kind, &type))
        return true;
    core_lock(LOCK_GRAPH);
    node_capture(stream, type);
    core_unlock(LOCK_GRAPH);
    return true;
}

bool capture_event(uint64_t stream, uint64_t event, bool is_record)
{
    const uint64_t words[STEP_WORDS] = {event};

    if (!memsim_capture_holds(stream))
        return false;
    if (is_record)
        memsim_capture_step(stream, STEP_EVENT, words);
    core_lock(LOCK_GRAPH);
    node_capture(stream_find(stream),
                 is_record ? GRAPH_EVENT_RECORD : GRAPH_EVENT_WAIT);
    core_unlock(LOCK_GRAPH);
    return true;
}

struct graph_body *capture_body(uint64_t handle)
{
    const struct capture *capture =
        memsim_capture_holds(handle) ? capture_of(stream_find(handle)) : NULL;

    return capture ? memsim_graph_get(capture->graph) : NULL;
}

bool memsim_capture_step(uint64_t stream, enum step_kind kind,
                         const uint64_t words[STEP_WORDS])
{
    struct graph_body *body = capture_body(stream);

    if (!body)
        return false;
    core_lock(LOCK_GRAPH);
    graph_steps_add(&body->steps, kind, words);
    core_unlock(LOCK_GRAPH);
    return true;
}

bool capture_kernel(const struct kernel *kernel,
                    const struct kernel_launch *launch)
{
    struct graph_body *body = capture_body(launch->stream);

    if (!body)
        return false;
    core_lock(LOCK_GRAPH);
    graph_steps_kernel(&body->steps, kernel, launch);
    core_unlock(LOCK_GRAPH);
    return true;
}

/* What is handed out anew by this thread, for a captured stream or one that is
 * not known, is so again at each launch of the captures under way: a thread's
 * own, or where it has none (autograd's) all. */
static void block_fresh(const uint64_t *stream, uint64_t address,
                        uint64_t bytes)
{
    const uint64_t words[STEP_WORDS] = {address, bytes};
    bool own = false;

    if (!capture_is_on() || (stream && !memsim_capture_holds(*stream)))
        return;
    core_lock(LOCK_GRAPH);
    for (int i = 0; i < CAPTURES_MAX; i++)
        own |= captures[i].id && captures[i].thread == record_thread();
    for (int i = 0; i < CAPTURES_MAX; i++) {
        const struct capture *c = &captures[i];

        if (c->id && (!own || c->thread == record_thread()))
            graph_steps_add(&memsim_graph_get(c->graph)->steps, STEP_FRESH,
                            words);
    }
    core_unlock(LOCK_GRAPH);
}

int capture_judge(const struct stream *stream)
{
    int rc = CORE_OK;

    core_lock(LOCK_GRAPH);
    const struct capture *own = capture_of(stream);
    if (own && own->status == CAPTURE_INVALIDATED)
        rc = CORE_CAPTURE_INVALIDATED;
    for (struct capture *c = captures; !stream && c < captures + CAPTURES_MAX;
         c++)
        if (c->id && c->blocking && c->mode != CAPTURE_RELAXED)
            rc = invalidate_capture(c, CORE_CAPTURE_IMPLICIT);
    core_unlock(LOCK_GRAPH);
    return rc;
}

int capture_synchronizes(const struct stream *stream)
{
    struct capture *capture = capture_of(stream);

    if (!capture)
        return CORE_OK;
    return capture->status == CAPTURE_INVALIDATED
               ? CORE_CAPTURE_INVALIDATED
               : invalidate_capture(capture, CORE_CAPTURE_UNSUPPORTED);
}

void capture_record_event(const struct stream *stream, struct event *event)
{
    event->mark.capture = 0;
    if (!capture_of(stream))
        return;
    core_lock(LOCK_GRAPH);
    const struct member *member = member_of(stream);
    event->mark.capture = capture_of(stream)->id;
    memcpy(event->mark.clock, member->clock, sizeof member->clock);
    event->mark.leaf_count = member->leaf_count;
    memcpy(event->mark.leaves, member->leaves, sizeof member->leaves);
    core_unlock(LOCK_GRAPH);
}

static void depend_on_mark(struct member *member,
                           const struct capture_mark *mark)
{
    for (int i = 0; i < CAPTURE_STREAMS; i++)
        if (member->clock[i] < mark->clock[i])
            member->clock[i] = mark->clock[i];
    for (uint32_t i = 0; i < mark->leaf_count; i++)
        leaf_add(member, mark->leaves[i]);
}

static struct capture *capture_by_id(uint64_t id)
{
    for (struct capture *c = captures; c < captures + CAPTURES_MAX; c++)
        if (id && c->id == id)
            return c;
    return NULL;
}

static int wait_event(struct stream *stream, uint64_t handle,
                      const struct capture_mark *mark)
{
    struct capture *of_event = capture_by_id(mark->capture);
    struct capture *own = capture_of(stream);

    if (own && own->status == CAPTURE_INVALIDATED)
        return CORE_CAPTURE_INVALIDATED;
    if (!of_event) /* an event from outside cannot order work inside */
        return own ? invalidate_capture(own, CORE_CAPTURE_ISOLATION) : CORE_OK;
    if (!stream)
        return invalidate_capture(of_event, CORE_CAPTURE_IMPLICIT);
    if (own && own != of_event)
        return invalidate_capture(own, CORE_CAPTURE_MERGE);
    if (!own && !capture_join(of_event, stream, handle))
        return invalidate_capture(of_event, CORE_CAPTURE_UNSUPPORTED);
    depend_on_mark(member_of(stream), mark);
    return CORE_OK;
}

int capture_wait_event(struct stream *stream, uint64_t handle,
                       const struct event *event)
{
    if (!capture_is_on())
        return CORE_OK;
    core_lock(LOCK_GRAPH);
    int rc = wait_event(stream, handle, &event->mark);
    core_unlock(LOCK_GRAPH);
    return rc;
}

void capture_forget_stream(const struct stream *stream)
{
    struct capture *capture = capture_of(stream);

    if (!capture)
        return;
    invalidate_capture(capture, 0);
    member_of(stream)->stream = NULL;
}
