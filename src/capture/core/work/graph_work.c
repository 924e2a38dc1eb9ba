/* SPDX-License-Identifier: Apache-2.0
 * What nodes do: their steps when they are added, and other ones when they are
 * set anew. */
#include <stdatomic.h>
#include <string.h>

#include "capture/core/memory/device.h"
#include "capture/core/work/graph.h"
#include "capture/core/diagnose/misuse.h"
#include "capture/core/run/record.h"
#include "capture/core/work/stream.h"
#include "capture/core/memory/values.h"

void graph_child_hold(struct graph_steps *steps, struct graph_body *child)
{
    const uint64_t words[STEP_WORDS] = {(uint64_t)child};

    atomic_fetch_add(&child->references, 1);
    graph_steps_add(steps, STEP_CHILD, words);
}

/* The child as it is now, whole: its graph may change or end. */
static int child_add(struct graph_steps *steps, uint64_t child)
{
    uint64_t clone;
    int rc = memsim_graph_clone(child, &clone);

    if (rc)
        return rc;
    graph_child_hold(steps, memsim_graph_get(clone));
    return memsim_graph_destroy(clone);
}

static void rows_add(struct graph_steps *steps, enum step_kind kind,
                     const struct graph_work *work)
{
    uint64_t words[STEP_WORDS];

    memcpy(words, work->words, sizeof words);
    for (uint64_t i = 0; i < work->rows; i++) {
        graph_steps_add(steps, kind, words);
        words[0] += work->to_pitch;
        words[1] += work->from_pitch; /* 0 of a set, whose value this is */
    }
}

static int work_add(struct graph_steps *steps, const struct graph_work *work)
{
    switch (work->type) {
    case GRAPH_KERNEL:
        graph_steps_kernel(steps, work->kernel, &work->launch);
        return CORE_OK;
    case GRAPH_COPY:
        rows_add(steps, STEP_COPY, work);
        return CORE_OK;
    case GRAPH_SET:
        rows_add(steps, STEP_SET, work);
        return CORE_OK;
    case GRAPH_HOST:
        graph_steps_add(steps, STEP_HOST, work->words);
        return CORE_OK;
    case GRAPH_EVENT_RECORD:
        graph_steps_add(steps, STEP_EVENT, work->words);
        return CORE_OK;
    case GRAPH_CHILD:
        return child_add(steps, work->child);
    default:
        return CORE_OK;
    }
}

/* What the same work would have recorded, given to a stream by hand. */
static void work_record(uint64_t graph, const struct graph_work *work)
{
    const struct kernel_launch *l = &work->launch;
    const struct graph_body *body = memsim_graph_get(graph);
    const struct graph_body *child = memsim_graph_get(work->child);
    uint64_t device = (uint64_t)body->device;
    const uint64_t *w = work->words;

    switch (work->type) {
    case GRAPH_KERNEL:
        RECORD(LAUNCH, .name = work->kernel->name, .device = device,
               .stream = graph, .grid_x_y = trace_pack(l->grid[0], l->grid[1]),
               .grid_z_block_x = trace_pack(l->grid[2], l->block[0]),
               .block_y_z = trace_pack(l->block[1], l->block[2]),
               .shared_bytes_rule =
                   trace_pack(l->shared_bytes, TRACE_RULE_NONE));
        return;
    case GRAPH_COPY:
        RECORD(COPY, .device = device, .stream = graph,
               .direction = (uint64_t)stream_copy_direction(w[0], w[1]),
               .destination = w[0], .source = w[1], .bytes = w[2] * work->rows,
               .peer = device);
        return;
    case GRAPH_SET:
        RECORD(SET, .device = device, .stream = graph, .address = w[0],
               .value = w[1], .bytes = w[2] * w[3] * work->rows);
        return;
    case GRAPH_HOST:
        RECORD(HOST_FUNCTION, .device = device, .stream = graph);
        return;
    case GRAPH_CHILD:
        RECORD(GRAPH_LAUNCH, .device = device, .stream = graph,
               .capture = child->id, .kernels = child->kernels);
        return;
    default:
        return;
    }
}

static uint64_t rows_bytes(const struct graph_work *work, uint64_t pitch,
                           uint64_t row_bytes)
{
    return (work->rows - 1) * pitch + row_bytes;
}

static bool memory_is_live(const struct graph_work *work, uint64_t row_bytes)
{
    const uint64_t *w = work->words;
    bool to =
        stream_range_is_live(w[0], rows_bytes(work, work->to_pitch, row_bytes));
    bool from = work->type == GRAPH_SET ||
                stream_range_is_live(
                    w[1], rows_bytes(work, work->from_pitch, row_bytes));

    if (!to || !from)
        misuse_range(to ? w[1] : w[0]);
    return to && from;
}

static bool copy_is_valid(const struct graph_work *work)
{
    const uint64_t *w = work->words;

    return w[0] && w[1] && w[2] && work->rows && memory_is_live(work, w[2]);
}

static bool set_is_valid(const struct graph_work *work)
{
    const uint64_t *w = work->words;
    uint64_t row_bytes = w[2] * w[3];

    if (w[2] != 1 && w[2] != 2 && w[2] != 4)
        return false;
    return memsim_values_is_device(w[0]) && w[3] && work->rows &&
           (work->rows == 1 || work->to_pitch >= row_bytes) &&
           memory_is_live(work, row_bytes);
}

static bool is_valid(const struct graph_work *work)
{
    const struct kernel *kernel = work->kernel;

    switch (work->type) {
    case GRAPH_KERNEL:
        return work->launch.arguments ||
               (!kernel->compute && !kernel->pointers);
    case GRAPH_COPY:
        return copy_is_valid(work);
    case GRAPH_SET:
        return set_is_valid(work);
    case GRAPH_HOST:
        return work->words[0];
    case GRAPH_CHILD:
        return memsim_graph_get(work->child);
    default:
        return true;
    }
}

/* hip-tests, run on NVIDIA's runtime: graph_memset_node_test_common.hh,
 * hipGraphExecMemcpyNodeSetParams.cc, hipGraphExecKernelNodeSetParams.cc. */
static int work_check(const struct graph_work *work)
{
    return is_valid(work) ? CORE_OK : CORE_INVALID_VALUE;
}

int memsim_graph_add(uint64_t graph, const uint64_t *dependencies, size_t count,
                     const struct graph_work *work, uint64_t *handle)
{
    struct graph_body *body = memsim_graph_get(graph);
    const struct graph_body *child = memsim_graph_get(work->child);
    struct graph_node *node;

    if (!body || (count && !dependencies) || child == body)
        return CORE_INVALID_VALUE;
    int rc = work_check(work);
    if (!rc)
        rc = graph_node_make(body, work->type, dependencies, count, &node);
    if (!rc)
        rc = work_add(&body->steps, work);
    if (rc)
        return rc;
    graph_steps_claim(&body->steps, node->number);
    node->has_rows = work->rows > 1;
    if (child)
        body->kernels += child->kernels;
    work_record(graph, work);
    *handle = (uint64_t)node;
    return CORE_OK;
}

static int change_node(struct graph_changes *changes,
                       const struct graph_node *node,
                       const struct graph_work *work)
{
    struct graph_change *c =
        graph_change_begin(changes, node->number, node->body->count);
    struct graph_work_steps *made = c ? graph_work_steps_new() : NULL;
    int rc = made ? work_add(&made->steps, work) : CORE_OUT_OF_MEMORY;

    if (rc) {
        graph_work_steps_release(made);
        return rc;
    }
    graph_steps_mark(&made->steps);
    graph_work_steps_release(c->work);
    c->work = made;
    return CORE_OK;
}

/* What NODE does first, in what it was added with; NULL: nothing. */
static const struct step *first_step(const struct graph_node *node)
{
    const struct step *s = node->body->steps.first;

    while (s && s->node != node->number)
        s = s->next;
    return s && s->kind != STEP_NODE ? s : NULL;
}

static int owner_of(uint64_t address)
{
    int device = -1;

    memsim_device_find(address, &device, NULL, NULL);
    return device;
}

static int can_change(const struct graph_node *node,
                      const struct graph_work *work)
{
    return node && node->type == work->type ? work_check(work)
                                            : CORE_INVALID_VALUE;
}

/* What was instantiated takes no other shape: a child with other nodes, rows,
 * another GPU's memory (cudaGraphExecMemcpyNodeSetParams and its kin). */
static bool keeps_shape(const struct graph_node *node,
                        const struct graph_work *work)
{
    const struct graph_body *now, *then;
    const struct step *s;
    uint64_t differs;

    switch (node->type) {
    case GRAPH_COPY:
    case GRAPH_SET:
        if (node->has_rows || work->rows != 1)
            return false;
        s = memsim_device_count() > 1 ? first_step(node) : NULL;
        return !s || owner_of(s->words[0]) == owner_of(work->words[0]);
    case GRAPH_CHILD:
        s = first_step(node);
        now = s ? (const struct graph_body *)s->words[0] : NULL;
        then = memsim_graph_get(work->child);
        return now && !graph_bodies_differ(now, now->count, then, &differs);
    default:
        return true;
    }
}

int memsim_graph_node_set(uint64_t handle, const struct graph_work *work)
{
    const struct graph_node *node = memsim_graph_node_get(handle);

    int rc = can_change(node, work);

    return rc ? rc : change_node(&node->body->changes, node, work);
}

/* NODE where EXEC was made of its graph when that had it already. */
static const struct graph_node *node_of(const struct graph_exec *exec,
                                        uint64_t handle)
{
    const struct graph_node *node = memsim_graph_node_get(handle);

    return exec && node && node->body == exec->body &&
                   node->number <= exec->count
               ? node
               : NULL;
}

int memsim_graph_exec_set(uint64_t handle, uint64_t node_handle,
                          const struct graph_work *work)
{
    struct graph_exec *exec = graph_exec_get(handle);
    const struct graph_node *node = node_of(exec, node_handle);

    int rc = can_change(node, work);

    if (!rc && !keeps_shape(node, work))
        rc = CORE_INVALID_VALUE;
    if (rc)
        return rc;
    exec->is_stale = true;
    exec->frees = misuse_frees() - 1;
    return change_node(&exec->changes, node, work);
}

static bool can_be_off(const struct graph_node *node)
{
    return node && (node->type == GRAPH_KERNEL || node->type == GRAPH_COPY ||
                    node->type == GRAPH_SET);
}

int memsim_graph_exec_enable(uint64_t handle, uint64_t node_handle, bool now)
{
    struct graph_exec *exec = graph_exec_get(handle);
    const struct graph_node *node = node_of(exec, node_handle);

    if (!can_be_off(node))
        return CORE_INVALID_VALUE;
    struct graph_change *c =
        graph_change_begin(&exec->changes, node->number, exec->body->count);
    if (!c)
        return CORE_OUT_OF_MEMORY;
    c->is_off = !now;
    exec->is_stale = true;
    return CORE_OK;
}

int memsim_graph_exec_enabled(uint64_t handle, uint64_t node_handle, bool *now)
{
    const struct graph_exec *exec = memsim_graph_exec_get(handle);
    const struct graph_node *node = node_of(exec, node_handle);

    if (!can_be_off(node))
        return CORE_INVALID_VALUE;
    const struct graph_change *c =
        graph_change_of(&exec->changes, node->number);
    *now = !c || !c->is_off;
    return CORE_OK;
}
