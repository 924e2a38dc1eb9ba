/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/real/captures.h"

#include <cuda.h>

#include "capture/core/base/lock.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/record.h"
#include "capture/real/card.h"
#include "capture/real/tap.h"

#define MEMBERS 1024 /* streams that are captured at a time */
#define GRAPHS  (1u << 16)

_Atomic uint32_t captures_on;
static uint64_t last_capture;

/* Streams that joined a capture that goes on; stream 0: unused. */
static struct member {
    uint64_t stream, capture;
} members[MEMBERS];

/* Graphs, and executable ones, by their handle: the last of a handle counts. */
static struct graph {
    const void *handle;
    uint64_t capture, kernels;
} * graphs;
static uint32_t graph_count;
static uint64_t *kernels; /* of captures, by number */

static struct member *member_find(uint64_t stream)
{
    for (int i = 0; i < MEMBERS; i++)
        if (members[i].stream == stream)
            return &members[i];
    return NULL;
}

/* Under LOCK_GRAPH. */
static void capture_join(int device, uint64_t stream, uint64_t capture)
{
    struct member *free_one = member_find(0);

    if (!free_one)
        return;
    *free_one = (struct member){stream, capture};
    RECORD(CAPTURE_JOIN, .device = (uint64_t)device, .stream = stream,
           .capture = capture);
}

void tap_capture(uint64_t stream)
{
    int device = card_current();

    if (device < 0)
        return;
    core_lock(LOCK_GRAPH);
    if (!kernels)
        kernels = memsim_pages_reserve(0, GRAPHS * sizeof *kernels);
    capture_join(device, stream, ++last_capture);
    core_unlock(LOCK_GRAPH);
    atomic_fetch_add(&captures_on, 1);
}

/* One capture at a time is known; PyTorch has no more. */
void captures_meet(int device, uint64_t stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

    if (!stream ||
        REAL_FUNCTION(cuStreamIsCapturing)((CUstream)stream, &status) ||
        status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
        return;
    core_lock(LOCK_GRAPH);
    if (!member_find(stream))
        capture_join(device, stream, last_capture);
    core_unlock(LOCK_GRAPH);
}

void captures_count(uint64_t stream)
{
    if (!captures_on)
        return;
    core_lock(LOCK_GRAPH);
    const struct member *m = stream ? member_find(stream) : NULL;
    if (m && kernels && m->capture < GRAPHS)
        kernels[m->capture]++;
    core_unlock(LOCK_GRAPH);
}

static struct graph *graph_find(const void *handle)
{
    for (uint32_t i = 0; i < graph_count; i++)
        if (graphs[i].handle == handle)
            return &graphs[i];
    return NULL;
}

static void graph_add(const void *handle, uint64_t capture, uint64_t count)
{
    if (!graphs)
        graphs = memsim_pages_reserve(0, GRAPHS * sizeof *graphs);
    struct graph *g = graph_find(handle);
    if (!g && graphs && graph_count < GRAPHS)
        g = &graphs[graph_count++];
    if (g)
        *g = (struct graph){handle, capture, count};
}

void tap_captured(uint64_t stream, const void *graph)
{
    core_lock(LOCK_GRAPH);
    const struct member *origin = member_find(stream);
    uint64_t capture = origin ? origin->capture : 0;
    if (capture) {
        RECORD(CAPTURE_END, .capture = capture, .whole = graph != NULL);
        for (int i = 0; i < MEMBERS; i++)
            if (members[i].stream && members[i].capture == capture)
                members[i] = (struct member){0};
        if (graph)
            graph_add(graph, capture,
                      kernels && capture < GRAPHS ? kernels[capture] : 0);
    }
    core_unlock(LOCK_GRAPH);
    if (capture)
        atomic_fetch_sub(&captures_on, 1);
}

static struct graph graph_get(const void *handle)
{
    core_lock(LOCK_GRAPH);
    const struct graph *found = graph_find(handle);
    struct graph g = found ? *found : (struct graph){0};
    core_unlock(LOCK_GRAPH);
    return g;
}

void tap_instantiated(const struct real_call *call, const void *exec,
                       const void *graph)
{
    struct graph g = graph_get(graph);

    if (!g.capture)
        return;
    core_lock(LOCK_GRAPH);
    graph_add(exec, g.capture, g.kernels);
    core_unlock(LOCK_GRAPH);
    TAP(call, GRAPH_INSTANTIATE, .exec = (uint64_t)exec, .capture = g.capture,
         .kernels = g.kernels);
}

void tap_graph(const struct real_call *call, const void *exec, uint64_t stream)
{
    struct graph g = graph_get(exec);

    TAP_ON(call, stream, GRAPH_LAUNCH, .exec = (uint64_t)exec,
            .capture = g.capture, .kernels = g.kernels);
}
