/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/graph.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "capture/core/memory/device.h"
#include "capture/core/base/handle.h"
#include "capture/core/base/lock.h"
#include "capture/core/run/record.h"

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
    struct graph_node *found =
        memsim_handle_get(HANDLE_GRAPH_NODE, (void *)node);

    return found && !found->body->is_gone ? found : NULL;
}

struct graph_exec *graph_exec_get(uint64_t exec)
{
    return memsim_handle_get(HANDLE_GRAPH_EXEC, (void *)exec);
}

const struct graph_exec *memsim_graph_exec_get(uint64_t exec)
{
    return graph_exec_get(exec);
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
        RECORD(CAPTURE_JOIN, .device = (uint64_t)body->device,
               .stream = *handle, .capture = body->id);
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
    graph_changes_fini(&body->changes);
    memsim_handle_free(HANDLE_GRAPH_BODY, body);
}

int memsim_graph_destroy(uint64_t handle)
{
    struct graph *graph = graph_get(handle);

    if (!graph)
        return CORE_INVALID_VALUE;
    if (graph->body->by_hand)
        RECORD(CAPTURE_END, .capture = graph->body->id, .whole = 1);
    graph->body->is_gone = true;
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
    node->number = ++body->count;
    body->kernels += type == GRAPH_KERNEL;
    return node;
}

int graph_node_make(struct graph_body *body, enum graph_node_type type,
                    const uint64_t *dependencies, size_t count,
                    struct graph_node **made)
{
    struct graph_node *before[GRAPH_DEPENDENCIES];

    for (size_t i = 0; i < count; i++) {
        struct graph_node *node = memsim_graph_node_get(dependencies[i]);

        if (!node || node->body != body)
            return CORE_INVALID_VALUE;
        for (size_t j = 0; j < i; j++)
            if (dependencies[j] == dependencies[i])
                return CORE_INVALID_VALUE;
        if (i < GRAPH_DEPENDENCIES)
            before[i] = node;
    }
    core_lock(LOCK_GRAPH);
    *made = graph_node_add(body, type, before, count);
    core_unlock(LOCK_GRAPH);
    return *made ? CORE_OK : CORE_OUT_OF_MEMORY;
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

int graph_body_fill(struct graph_body *to, const struct graph_body *from,
                    const struct graph_changes *changes)
{
    int rc = CORE_OK;

    for (const struct graph_node *n = from->first; n && !rc; n = n->next) {
        uint64_t before[GRAPH_DEPENDENCIES];
        struct graph_node *node;

        for (uint32_t i = 0; i < n->dependency_count; i++)
            before[i] = (uint64_t)place_in(to, n->dependencies[i]);
        rc = graph_node_make(to, n->type, before, n->dependency_count, &node);
    }
    to->id = from->id;
    to->kernels = from->kernels;
    graph_steps_copy(&to->steps, &from->steps);
    graph_changes_copy(&to->changes, changes);
    return rc;
}

int memsim_graph_clone(uint64_t graph, uint64_t *clone)
{
    const struct graph_body *body = memsim_graph_get(graph);
    int rc = body ? memsim_graph_create(false, clone) : CORE_INVALID_VALUE;

    return rc ? rc
              : graph_body_fill(memsim_graph_get(*clone), body, &body->changes);
}

static bool edges_match(const struct graph_node *x, const struct graph_node *y)
{
    if (x->dependency_count != y->dependency_count)
        return false;
    for (uint32_t i = 0; i < x->dependency_count; i++)
        if (x->dependencies[i]->number != y->dependencies[i]->number)
            return false;
    return true;
}

/* An edge that differs is told before a type (hip-tests, run on NVIDIA's
 * runtime: hipGraphExecUpdate.cc, NodeType_Changed). */
enum graph_difference graph_bodies_differ(const struct graph_body *a,
                                          uint32_t count,
                                          const struct graph_body *b,
                                          uint64_t *node)
{
    const struct graph_node *x = a->first, *y = b->first;
    enum graph_difference difference = GRAPH_SAME;

    *node = 0;
    if (b->count != count)
        return GRAPH_TOPOLOGY;
    for (; count-- && x && y; x = x->next, y = y->next) {
        if (!edges_match(x, y)) {
            *node = (uint64_t)y;
            return GRAPH_TOPOLOGY;
        }
        if (!difference && x->type != y->type) {
            *node = (uint64_t)y;
            difference = GRAPH_TYPE;
        }
    }
    return difference;
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
