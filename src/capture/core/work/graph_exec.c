/* SPDX-License-Identifier: Apache-2.0
 * Graphs that were instantiated, and their launches. */
#include <stdatomic.h>

#include "capture/core/work/stream_capture.h"
#include "capture/core/diagnose/fault.h"
#include "capture/core/work/graph.h"
#include "capture/core/base/handle.h"
#include "capture/core/base/lock.h"
#include "capture/core/diagnose/misuse.h"
#include "capture/core/run/activity.h"
#include "capture/core/run/record.h"
#include "capture/core/work/submit.h"
#include "capture/core/work/stream.h"

static void instantiate_record(const struct graph_exec *exec)
{
    const struct graph_body *body = exec->body;

    RECORD(GRAPH_INSTANTIATE, .device = (uint64_t)body->device,
           .exec = (uint64_t)exec, .capture = body->id, .nodes = body->count,
           .kernels = body->kernels);
}

/* EXEC, of no graph, becomes one of BODY as it is now. */
static void exec_take(struct graph_exec *exec, struct graph_body *body)
{
    atomic_fetch_add(&body->references, 1);
    exec->body = body;
    exec->count = body->count;
    exec->frees = misuse_frees() - 1; /* the first launch looks */
    exec->is_stale = false;
    graph_changes_copy(&exec->changes, &body->changes);
    graph_steps_mark(&body->steps);
    graph_plan_init(&exec->plan, &body->steps, &exec->changes, exec->count);
    instantiate_record(exec);
}

static void exec_leave(struct graph_exec *exec)
{
    graph_plan_fini(&exec->plan);
    graph_changes_fini(&exec->changes);
    graph_body_release(exec->body);
}

int memsim_graph_instantiate(uint64_t graph, uint64_t flags, uint64_t *handle)
{
    struct graph_body *body = memsim_graph_get(graph);

    if (!body)
        return CORE_INVALID_VALUE;
    struct graph_exec *exec =
        memsim_handle_new(HANDLE_GRAPH_EXEC, sizeof *exec);
    if (!exec)
        return CORE_OUT_OF_MEMORY;
    exec->flags = flags;
    exec_take(exec, body);
    *handle = (uint64_t)exec;
    return CORE_OK;
}

int memsim_graph_exec_destroy(uint64_t handle)
{
    struct graph_exec *exec = graph_exec_get(handle);

    if (!exec)
        return CORE_INVALID_VALUE;
    exec_leave(exec);
    return memsim_handle_free(HANDLE_GRAPH_EXEC, exec);
}

int memsim_graph_exec_update(uint64_t handle, uint64_t graph,
                             enum graph_difference *difference, uint64_t *node)
{
    struct graph_exec *exec = graph_exec_get(handle);
    struct graph_body *body = memsim_graph_get(graph);

    *difference = GRAPH_SAME;
    *node = 0;
    if (!exec || !body)
        return CORE_INVALID_VALUE;
    *difference = graph_bodies_differ(exec->body, exec->count, body, node);
    if (*difference)
        return CORE_GRAPH_UPDATE_FAILURE;
    struct graph_exec old = *exec;
    exec_take(exec, body);
    exec_leave(&old);
    return CORE_OK;
}

/* In a capture, a launched graph becomes a node of the one being made. */
static int launch_captured(struct graph_body *outer,
                           const struct graph_exec *exec)
{
    struct graph_body *child = exec->body;
    uint64_t clone;
    int rc = CORE_OK;

    if (exec->changes.count) {
        rc = memsim_graph_create(false, &clone);
        if (!rc)
            rc = graph_body_fill(memsim_graph_get(clone), exec->body,
                                 &exec->changes);
        if (rc)
            return rc;
        child = memsim_graph_get(clone);
    }
    core_lock(LOCK_GRAPH);
    outer->kernels += child->kernels;
    graph_child_hold(&outer->steps, child);
    core_unlock(LOCK_GRAPH);
    return exec->changes.count ? memsim_graph_destroy(clone) : CORE_OK;
}

static void launch_check(struct graph_exec *exec)
{
    const struct graph_body *body = exec->body;

    exec->frees = misuse_frees();
    graph_steps_check(&body->steps, body->device);
    for (uint32_t i = 0; i < exec->changes.count; i++)
        if (exec->changes.of[i].work)
            graph_steps_check(&exec->changes.of[i].work->steps, body->device);
}

static void launch_run(struct graph_exec *exec, uint64_t stream)
{
    if (exec->is_stale) {
        graph_plan_fini(&exec->plan);
        graph_plan_init(&exec->plan, &exec->body->steps, &exec->changes,
                        exec->count);
        exec->is_stale = false;
    }
    if (exec->frees != misuse_frees())
        launch_check(exec);
    graph_plan_run(&exec->plan, stream);
}

/* An H200 refuses a graph in a capture whose cudaGraph_t was destroyed, as
 * PyTorch does with its own. */
int memsim_graph_launch(uint64_t handle, uint64_t stream)
{
    struct graph_exec *exec = graph_exec_get(handle);
    int device;

    if (!exec)
        return CORE_INVALID_VALUE;
    int rc = memsim_stream_device(stream, &device);
    if (rc)
        return rc;
    stream_await(stream);
    memsim_kernel_count(device);
    struct graph_body *outer = capture_body(stream);
    if (outer && exec->body->is_gone)
        return capture_synchronizes(memsim_stream_get(stream));
    if (outer)
        rc = launch_captured(outer, exec);
    if (__builtin_expect(memsim_activity_on, false))
        activity_graph(handle);
    SUBMIT(GRAPH_LAUNCH, .device = (uint64_t)device, .stream = stream,
           .exec = handle, .capture = exec->body->id,
           .kernels = exec->body->kernels);
    if (outer)
        return rc;
    launch_run(exec, stream);
    return fault_of_launch(device);
}
