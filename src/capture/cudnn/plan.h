/* SPDX-License-Identifier: Apache-2.0
 * What an operation graph is, once it is known: the work that executing it
 * means, the workspace that it takes, and the engines that offer it. */
#ifndef MEMSIM_CAPTURE_CUDNN_PLAN_H
#define MEMSIM_CAPTURE_CUDNN_PLAN_H

#include "capture/cudnn/graph.h"

enum plan_kind {
    PLAN_CONVOLUTION,
    PLAN_ATTENTION,
    PLAN_OTHER,
};

/* The `operation` of an ATTENTION record. */
enum attention_operation {
    ATTENTION_FORWARD,
    ATTENTION_BACKWARD,
};

struct plan {
    enum plan_kind kind;
    uint32_t name;
    uint32_t operation;
    cudnnDataType_t type, compute;
    int64_t engine;
    uint64_t workspace_bytes; /* what the plan asks for */
    uint64_t workspace_most;  /* of a convolution: struct workspace */
    unsigned workspace_gpu;
    uint64_t scratch_bytes;   /* what graph_scratch_bytes says */
    struct text detail;
};

/* What executing GRAPH (an operation graph) by ENGINE means. */
void plan_read(const struct descriptor *graph, int64_t engine,
               struct plan *plan);

/* Makes PLAN, which is empty, that of the convolution C. */
void plan_set_convolution(struct plan *plan, const struct convolution *c);

/* The engines that heuristics offer for GRAPH, best first; how many. The list
 * of last resort, FALLBACK, has the last of them only. */
int plan_engines(const struct descriptor *graph, bool fallback,
                 int64_t engines[ENGINE_COUNT]);

void plan_record(const struct cudnn *cudnn, const struct plan *plan);

/* Fills PLAN where GRAPH is scaled-dot-product attention; else false. */
bool attention_read(const struct descriptor *graph, struct plan *plan);

#endif
