/* SPDX-License-Identifier: Apache-2.0
 * CUDA graphs: nodes that were captured from streams or added by hand, and
 * what can be launched of them. The records of a graph's work are in the trace
 * once, where it was captured; each launch is one GRAPH_LAUNCH. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_GRAPH_H
#define MEMSIM_CAPTURE_CORE_WORK_GRAPH_H

#include <stdbool.h>

#include "capture/core/base/core.h"
#include "capture/core/work/graph_change.h"
#include "capture/core/work/graph_steps.h"
#include "capture/core/work/kernel.h"
#include "common/trace/trace.h"

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

struct graph_node {
    enum graph_node_type type;
    uint32_t number; /* in its body, from 1 */
    bool has_rows;
    struct graph_body *body;
    struct graph_node *next;
    uint32_t dependency_count;
    struct graph_node *dependencies[GRAPH_DEPENDENCIES];
};

/* The nodes, which a graph and what was made of it share. */
struct graph_body {
    uint64_t id; /* also the capture's, in the trace; a copy has the same */
    bool by_hand;
    bool is_gone; /* its graph was destroyed: its nodes are no handles now */
    int device;
    _Atomic uint32_t references;
    uint32_t count;   /* of nodes */
    uint32_t kernels; /* of them and of the children's */
    struct graph_node *first, *last;
    struct graph_steps steps;
    struct graph_changes changes;
};

struct graph {
    struct graph_body *body;
};

struct graph_exec {
    struct graph_body *body;
    uint32_t count; /* nodes that there were when it was made */
    uint64_t flags;
    struct graph_plan plan;
    bool is_stale; /* the plan, since the last change */
    struct graph_changes changes;
    uint32_t frees; /* misuse_frees() at the last look; one less: look again */
};

/* What a node does. Copies and sets have ROWS, so many bytes apart; of a set,
 * WORDS are the first one's. */
struct graph_work {
    enum graph_node_type type;
    const struct kernel *kernel;
    struct kernel_launch launch;
    uint64_t words[STEP_WORDS]; /* as step_kind says: of all but kernels */
    uint64_t rows, to_pitch, from_pitch;
    uint64_t child; /* a graph */
};

/* BY_HAND: for nodes that are added one by one, not captured. */
CORE_API int memsim_graph_create(bool by_hand, uint64_t *graph);
CORE_API int memsim_graph_destroy(uint64_t graph);
CORE_API int memsim_graph_clone(uint64_t graph, uint64_t *clone);

/* NULL for a handle that is none. */
CORE_API struct graph_body *memsim_graph_get(uint64_t graph);
CORE_API struct graph_node *memsim_graph_node_get(uint64_t node);
CORE_API const struct graph_exec *memsim_graph_exec_get(uint64_t exec);

/* Adds a node that does WORK, after DEPENDENCIES. */
CORE_API int memsim_graph_add(uint64_t graph, const uint64_t *dependencies,
                              size_t count, const struct graph_work *work,
                              uint64_t *node);

/* NODE does WORK, of the same type, in what is made of its graph from now on;
 * and in the launches of EXEC, which was made of that graph. */
CORE_API int memsim_graph_node_set(uint64_t node,
                                   const struct graph_work *work);
CORE_API int memsim_graph_exec_set(uint64_t exec, uint64_t node,
                                   const struct graph_work *work);

/* Whether the launches of EXEC do what NODE, a kernel, copy or set, does. */
CORE_API int memsim_graph_exec_enable(uint64_t exec, uint64_t node, bool now);
CORE_API int memsim_graph_exec_enabled(uint64_t exec, uint64_t node, bool *now);

CORE_API int memsim_graph_instantiate(uint64_t graph, uint64_t flags,
                                      uint64_t *exec);
CORE_API int memsim_graph_exec_destroy(uint64_t exec);

/* How two graphs differ: in their edges, or in the type of a node. */
enum graph_difference { GRAPH_SAME, GRAPH_TOPOLOGY, GRAPH_TYPE };

/* EXEC does what GRAPH does from now on; the two must have the same nodes.
 * Outputs say how they differ and, if there is one, the first of GRAPH's nodes
 * that does. */
CORE_API int memsim_graph_exec_update(uint64_t exec, uint64_t graph,
                                      enum graph_difference *difference,
                                      uint64_t *node);
CORE_API int memsim_graph_launch(uint64_t exec, uint64_t stream);

/* A file that Graphviz draws. CORE_INVALID_VALUE where it can't be written. */
CORE_API int memsim_graph_print(uint64_t graph, const char *path);

/* For stream_capture.c: a body's new node, with LOCK_GRAPH held; NULL without
 * room. */
struct graph_node *graph_node_add(struct graph_body *body,
                                  enum graph_node_type type,
                                  struct graph_node *const *dependencies,
                                  size_t count);
void graph_body_release(struct graph_body *body);

/* For graph_work.c and graph_exec.c. */
struct graph_exec *graph_exec_get(uint64_t exec);
int graph_node_make(struct graph_body *body, enum graph_node_type type,
                    const uint64_t *dependencies, size_t count,
                    struct graph_node **made);

/* TO, which is empty, gets FROM's nodes and what they do, with CHANGES for
 * FROM's own. */
int graph_body_fill(struct graph_body *to, const struct graph_body *from,
                    const struct graph_changes *changes);

/* The first COUNT nodes of A against all of B; *NODE is one of B, or 0. */
enum graph_difference graph_bodies_differ(const struct graph_body *a,
                                          uint32_t count,
                                          const struct graph_body *b,
                                          uint64_t *node);

/* A child is a step of STEPS, which hold a reference to it. */
void graph_child_hold(struct graph_steps *steps, struct graph_body *child);

#endif
