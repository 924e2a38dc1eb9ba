/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/graph.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/core/capture.h"
#include "capture/core/device.h"
#include "capture/core/fault.h"
#include "capture/core/handle.h"
#include "capture/core/kernel.h"
#include "capture/core/lock.h"
#include "capture/core/record.h"
#include "capture/core/stream.h"

static struct graph *graph_get(uint64_t handle)
{
    return memsim_handle_get(HANDLE_GRAPH, (void *)handle);
}

struct graph_body *memsim_graph_get(uint64_t handle)
{
    const struct graph *graph = graph_get(handle);

    return graph ? graph->body : NULL;
}

struct graph_node *memsim_graph_node_get(uint64_t node)
{
    return memsim_handle_get(HANDLE_GRAPH_NODE, (void *)node);
}

const struct graph_exec *memsim_graph_exec_get(uint64_t exec)
{
    return memsim_handle_get(HANDLE_GRAPH_EXEC, (void *)exec);
}

int memsim_graph_create(bool by_hand, uint64_t *handle)
{
    static _Atomic uint64_t ids;
    struct graph *graph = memsim_handle_new(HANDLE_GRAPH, sizeof *graph);
    struct graph_body *body =
        memsim_handle_new(HANDLE_GRAPH_BODY, sizeof *body);

    if (!graph || !body)
        return CORE_OUT_OF_MEMORY;
    body->id = ++ids;
    body->device = memsim_device_current();
    body->references = 1;
    body->by_hand = by_hand;
    graph->body = body;
    *handle = (uint64_t)graph;
    if (by_hand)
        RECORD(CAPTURE_JOIN, (uint64_t)body->device, *handle, body->id);
    return CORE_OK;
}

void graph_body_release(struct graph_body *body)
{
    if (atomic_fetch_sub(&body->references, 1) > 1)
        return;
    for (struct graph_node *node = body->first, *next; node; node = next) {
        next = node->next;
        memsim_handle_free(HANDLE_GRAPH_NODE, node);
    }
    graph_steps_fini(&body->steps);
    memsim_handle_free(HANDLE_GRAPH_BODY, body);
}

int memsim_graph_destroy(uint64_t handle)
{
    struct graph *graph = graph_get(handle);

    if (!graph)
        return CORE_INVALID_VALUE;
    if (graph->body->by_hand)
        RECORD(CAPTURE_END, graph->body->id, 1);
    graph_body_release(graph->body);
    return memsim_handle_free(HANDLE_GRAPH, graph);
}

struct graph_node *graph_node_add(struct graph_body *body,
                                  enum graph_node_type type,
                                  struct graph_node *const *dependencies,
                                  size_t count)
{
    struct graph_node *node =
        memsim_handle_new(HANDLE_GRAPH_NODE, sizeof *node);

    if (!node)
        return NULL;
    node->type = type;
    node->body = body;
    for (size_t i = 0; i < count && i < GRAPH_DEPENDENCIES; i++)
        node->dependencies[node->dependency_count++] = dependencies[i];
    if (body->last)
        body->last->next = node;
    else
        body->first = node;
    body->last = node;
    body->count++;
    body->kernels += type == GRAPH_KERNEL;
    return node;
}

int memsim_graph_add(uint64_t graph, enum graph_node_type type,
                     const uint64_t *dependencies, size_t count,
                     uint64_t *handle)
{
    struct graph_body *body = memsim_graph_get(graph);
    struct graph_node *before[GRAPH_DEPENDENCIES];

    if (!body || (count && !dependencies))
        return CORE_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct graph_node *node = memsim_graph_node_get(dependencies[i]);

        if (!node || node->body != body)
            return CORE_INVALID_VALUE;
        if (i < GRAPH_DEPENDENCIES)
            before[i] = node;
    }
    core_lock(LOCK_GRAPH);
    struct graph_node *node = graph_node_add(body, type, before, count);
    core_unlock(LOCK_GRAPH);
    if (!node)
        return CORE_OUT_OF_MEMORY;
    *handle = (uint64_t)node;
    return CORE_OK;
}

void memsim_graph_step(uint64_t graph, enum step_kind kind,
                       const uint64_t words[STEP_WORDS])
{
    core_lock(LOCK_GRAPH);
    graph_steps_add(&memsim_graph_get(graph)->steps, kind, words);
    core_unlock(LOCK_GRAPH);
}

void memsim_graph_kernel(uint64_t graph, const struct kernel *kernel,
                         const struct kernel_launch *launch)
{
    if (!kernel->compute || !launch->arguments)
        return;
    core_lock(LOCK_GRAPH);
    graph_steps_kernel(&memsim_graph_get(graph)->steps, kernel->compute,
                       launch);
    core_unlock(LOCK_GRAPH);
}

static const struct graph_node *place_in(const struct graph_body *body,
                                         const struct graph_node *twin)
{
    const struct graph_node *node = body->first;

    for (const struct graph_node *t = twin->body->first; t && t != twin;
         t = t->next)
        node = node->next;
    return node;
}

int memsim_graph_clone(uint64_t graph, uint64_t *clone)
{
    const struct graph_body *body = memsim_graph_get(graph);
    int rc = body ? memsim_graph_create(false, clone) : CORE_INVALID_VALUE;
    struct graph_body *copy = rc ? NULL : memsim_graph_get(*clone);

    for (const struct graph_node *n = rc ? NULL : body->first; n && !rc;
         n = n->next) {
        uint64_t before[GRAPH_DEPENDENCIES], node;

        for (uint32_t i = 0; i < n->dependency_count; i++)
            before[i] = (uint64_t)place_in(copy, n->dependencies[i]);
        rc = memsim_graph_add(*clone, n->type, before, n->dependency_count,
                              &node);
    }
    if (copy) {
        copy->id = body->id;
        copy->kernels = body->kernels;
        graph_steps_copy(&copy->steps, &body->steps);
    }
    return rc;
}

/* A child is a step of BODY, which holds a reference to it. */
static void child_hold(struct graph_body *body, struct graph_body *child)
{
    const uint64_t words[STEP_WORDS] = {(uint64_t)child};

    atomic_fetch_add(&child->references, 1);
    core_lock(LOCK_GRAPH);
    body->kernels += child->kernels;
    graph_steps_add(&body->steps, STEP_CHILD, words);
    core_unlock(LOCK_GRAPH);
}

int memsim_graph_child(uint64_t graph, uint64_t child)
{
    uint64_t clone;
    int rc = memsim_graph_clone(child, &clone);

    if (rc)
        return rc;
    child_hold(memsim_graph_get(graph), memsim_graph_get(clone));
    return memsim_graph_destroy(clone);
}

static void instantiate_record(const struct graph_exec *exec)
{
    const struct graph_body *body = exec->body;

    RECORD(GRAPH_INSTANTIATE, (uint64_t)body->device, (uint64_t)exec, body->id,
           body->count, body->kernels);
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
    atomic_fetch_add(&body->references, 1);
    *exec = (struct graph_exec){body, body->count, flags, {0}};
    graph_plan_init(&exec->plan, &body->steps);
    *handle = (uint64_t)exec;
    instantiate_record(exec);
    return CORE_OK;
}

int memsim_graph_exec_destroy(uint64_t handle)
{
    struct graph_exec *exec =
        memsim_handle_get(HANDLE_GRAPH_EXEC, (void *)handle);

    if (!exec)
        return CORE_INVALID_VALUE;
    graph_plan_fini(&exec->plan);
    graph_body_release(exec->body);
    return memsim_handle_free(HANDLE_GRAPH_EXEC, exec);
}

static bool bodies_match(const struct graph_body *a, uint32_t count,
                         const struct graph_body *b)
{
    const struct graph_node *x = a->first, *y = b->first;

    while (count-- && x && y && x->type == y->type &&
           x->dependency_count == y->dependency_count) {
        x = x->next;
        y = y->next;
    }
    return count == UINT32_MAX && !y;
}

int memsim_graph_exec_update(uint64_t handle, uint64_t graph)
{
    struct graph_exec *exec =
        memsim_handle_get(HANDLE_GRAPH_EXEC, (void *)handle);
    struct graph_body *body = memsim_graph_get(graph);

    if (!exec || !body)
        return CORE_INVALID_VALUE;
    if (!bodies_match(exec->body, exec->count, body))
        return CORE_GRAPH_UPDATE_FAILURE;
    atomic_fetch_add(&body->references, 1);
    graph_plan_fini(&exec->plan);
    graph_body_release(exec->body);
    exec->body = body;
    graph_plan_init(&exec->plan, &body->steps);
    instantiate_record(exec);
    return CORE_OK;
}

/* In a capture, a launched graph becomes a node of the one being made. */
int memsim_graph_launch(uint64_t handle, uint64_t stream)
{
    const struct graph_exec *exec = memsim_graph_exec_get(handle);
    int device;

    if (!exec)
        return CORE_INVALID_VALUE;
    int rc = memsim_stream_device(stream, &device);
    if (rc)
        return rc;
    memsim_kernel_count(device);
    RECORD(GRAPH_LAUNCH, (uint64_t)device, stream, handle, exec->body->id,
           exec->body->kernels);
    struct graph_body *outer = capture_body(stream);
    if (outer) {
        child_hold(outer, exec->body);
        return CORE_OK;
    }
    graph_plan_run(&exec->plan, stream);
    return fault_of_launch(device);
}

static const char *const type_names[] = {
    [GRAPH_KERNEL] = "KERNEL",
    [GRAPH_COPY] = "MEMCPY",
    [GRAPH_SET] = "MEMSET",
    [GRAPH_HOST] = "HOST",
    [GRAPH_CHILD] = "GRAPH",
    [GRAPH_EMPTY] = "EMPTY",
    [GRAPH_EVENT_WAIT] = "EVENT_WAIT",
    [GRAPH_EVENT_RECORD] = "EVENT_RECORD",
};

int memsim_graph_print(uint64_t graph, const char *path)
{
    const struct graph_body *body = memsim_graph_get(graph);
    int fd =
        body ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;

    if (fd < 0)
        return CORE_INVALID_VALUE;
    dprintf(fd, "digraph dot {\nsubgraph cluster_%llu {\n",
            (unsigned long long)body->id);
    for (const struct graph_node *n = body->first; n; n = n->next) {
        dprintf(fd, "\"%p\" [label=\"%s\"];\n", (const void *)n,
                type_names[n->type]);
        for (uint32_t i = 0; i < n->dependency_count; i++)
            dprintf(fd, "\"%p\" -> \"%p\";\n", (const void *)n->dependencies[i],
                    (const void *)n);
    }
    dprintf(fd, "}\n}\n");
    close(fd);
    return CORE_OK;
}
