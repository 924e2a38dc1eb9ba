/* SPDX-License-Identifier: Apache-2.0
 * CUDA graphs: nodes that were captured from streams or added by hand, and
 * what can be launched of them. The records of a graph's work are in the trace
 * once, where it was captured; each launch is one GRAPH_LAUNCH. */
#ifndef MEMSIM_CAPTURE_GRAPH_H
#define MEMSIM_CAPTURE_GRAPH_H

#include <stdbool.h>

#include "capture/core/core.h"
#include "capture/core/graph_steps.h"
#include "common/trace.h"

#define GRAPH_DEPENDENCIES 8 /* more of one node are not kept */

/* cudaGraphNodeType, which the driver numbers alike. */
enum graph_node_type {
    GRAPH_KERNEL,
    GRAPH_COPY,
    GRAPH_SET,
    GRAPH_HOST,
    GRAPH_CHILD,
    GRAPH_EMPTY,
    GRAPH_EVENT_WAIT,
    GRAPH_EVENT_RECORD,
};

struct kernel;

struct graph_node {
    enum graph_node_type type;
    struct graph_body *body;
    struct graph_node *next;
    uint32_t dependency_count;
    struct graph_node *dependencies[GRAPH_DEPENDENCIES];
};

/* The nodes, which a graph and what was made of it share. */
struct graph_body {
    uint64_t id; /* also the capture's, in the trace; a copy has the same */
    bool by_hand;
    int device;
    _Atomic uint32_t references;
    uint32_t count;   /* of nodes */
    uint32_t kernels; /* of them and of the children's */
    struct graph_node *first, *last;
    struct graph_steps steps;
};

struct graph {
    struct graph_body *body;
};

struct graph_exec {
    struct graph_body *body;
    uint32_t count; /* nodes that there were when it was made */
    uint64_t flags;
    struct graph_plan plan;
};

/* BY_HAND: for nodes that are added one by one, not captured. */
CORE_API int memsim_graph_create(bool by_hand, uint64_t *graph);
CORE_API int memsim_graph_destroy(uint64_t graph);
CORE_API int memsim_graph_clone(uint64_t graph, uint64_t *clone);

/* NULL for a handle that is none. */
CORE_API struct graph_body *memsim_graph_get(uint64_t graph);
CORE_API struct graph_node *memsim_graph_node_get(uint64_t node);
CORE_API const struct graph_exec *memsim_graph_exec_get(uint64_t exec);

/* Adds a node that comes after DEPENDENCIES. */
CORE_API int memsim_graph_add(uint64_t graph, enum graph_node_type type,
                              const uint64_t *dependencies, size_t count,
                              uint64_t *node);

/* What the node added last does: a step, or a launch of KERNEL. */
CORE_API void memsim_graph_step(uint64_t graph, enum step_kind kind,
                                const uint64_t words[STEP_WORDS]);
CORE_API void memsim_graph_kernel(uint64_t graph, const struct kernel *kernel,
                                  const struct kernel_launch *launch);

/* The graph CHILD as it is now, whole. */
CORE_API int memsim_graph_child(uint64_t graph, uint64_t child);

CORE_API int memsim_graph_instantiate(uint64_t graph, uint64_t flags,
                                      uint64_t *exec);
CORE_API int memsim_graph_exec_destroy(uint64_t exec);

/* EXEC does what GRAPH does from now on; the two must have the same nodes. */
CORE_API int memsim_graph_exec_update(uint64_t exec, uint64_t graph);
CORE_API int memsim_graph_launch(uint64_t exec, uint64_t stream);

/* A file that Graphviz draws. CORE_INVALID_VALUE where it can't be written. */
CORE_API int memsim_graph_print(uint64_t graph, const char *path);

/* For capture.c: a body's new node, with LOCK_GRAPH held; NULL without room. */
struct graph_node *graph_node_add(struct graph_body *body,
                                  enum graph_node_type type,
                                  struct graph_node *const *dependencies,
                                  size_t count);
void graph_body_release(struct graph_body *body);

#endif
