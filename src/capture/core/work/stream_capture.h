/* SPDX-License-Identifier: Apache-2.0
 * Stream capture: work given to a capturing stream becomes nodes of a graph.
 * Which calls a capture forbids, and what they return, follows "Prohibited and
 * Unhandled Operations" of the CUDA programming guide and the description of
 * cudaThreadExchangeStreamCaptureMode. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_STREAM_CAPTURE_H
#define MEMSIM_CAPTURE_CORE_WORK_STREAM_CAPTURE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "capture/core/base/core.h"
#include "capture/core/work/graph_steps.h"
#include "common/trace/trace.h"

struct event;
struct graph_body;
struct graph_node;
struct kernel;
struct op;
struct stream;

#define CAPTURE_STREAMS 32 /* in one capture */
#define CAPTURE_LEAVES  8  /* nodes that a stream's next one comes after */

/* cudaStreamCaptureStatus and cudaStreamCaptureMode, in both APIs. */
enum capture_status { CAPTURE_NONE, CAPTURE_ACTIVE, CAPTURE_INVALIDATED };
enum capture_mode { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED };

/* What an event recorded in a capture stands for. */
struct capture_mark {
    uint64_t capture; /* 0: recorded outside any */
    uint32_t clock[CAPTURE_STREAMS];
    uint32_t leaf_count;
    struct graph_node *leaves[CAPTURE_LEAVES];
};

struct capture_info {
    enum capture_status status;
    uint64_t id, graph;
    uint32_t leaf_count;
    struct graph_node *const *leaves; /* of the stream asked about */
};

/* Starts a capture in STREAM; into GRAPH where that is not 0. */
CORE_API int memsim_capture_begin(uint64_t stream, enum capture_mode mode,
                                  uint64_t graph);

/* Ends the capture that began in STREAM; *GRAPH is 0 where it failed. */
CORE_API int memsim_capture_end(uint64_t stream, uint64_t *graph);
CORE_API int memsim_capture_info(uint64_t stream, struct capture_info *info);

/* Replaces (SET) or adds to what STREAM's next node comes after. */
CORE_API int memsim_capture_depend(uint64_t stream, const uint64_t *nodes,
                                   size_t count, bool set);

/* This thread's mode becomes *MODE, and *MODE what it was. */
CORE_API int memsim_capture_exchange_mode(int *mode);

/* To be asked by calls that are unsafe while anything is being captured, such
 * as cudaMalloc: CORE_OK, or the code to fail with. The captures that it would
 * have broken are invalid then. */
CORE_API int memsim_capture_forbids(void);

/* True where work given to STREAM is captured, not carried out. */
CORE_API bool memsim_capture_holds(uint64_t stream);

/* Makes a step, or a launch of KERNEL, one of the graph that STREAM's work is
 * captured into, before the work is submitted, which makes it a node. False
 * where it is not captured: it is to be done at once. */
CORE_API bool memsim_capture_step(uint64_t stream, enum step_kind kind,
                                  const uint64_t words[STEP_WORDS]);

/* That graph, or NULL. */
struct graph_body *capture_body(uint64_t stream);

bool capture_kernel(const struct kernel *kernel,
                    const struct kernel_launch *launch);

extern _Atomic uint32_t capture_count; /* captures under way */

/* True while anything is captured. */
static inline bool capture_is_on(void)
{
    return atomic_load_explicit(&capture_count, memory_order_relaxed);
}

/* For submit.c: OP was given to its stream. Where that is captured, work
 * becomes a node. False where it is not: OP is carried out now. */
bool capture_work(const struct op *op);

/* For stream.c. Whether STREAM (NULL: the legacy one) may be given work; what
 * a synchronisation of it would break; events between streams. */
int capture_judge(const struct stream *stream);

static inline int capture_admits(const struct stream *stream)
{
    return capture_is_on() ? capture_judge(stream) : CORE_OK;
}

/* Recording an EVENT, or waiting for one, that is not the capture's own becomes
 * a node. False where STREAM is not captured. */
bool capture_event(uint64_t stream, uint64_t event, bool is_record);

/* What the host gets that asks for EVENT: CORE_OK unless it lies in a capture,
 * which is invalid then. */
int capture_asks_event(const struct event *event);

/* What waits for STREAM gets, and what no capture takes. */
int capture_synchronizes(const struct stream *stream);
void capture_record_event(const struct stream *stream, struct event *event);
int capture_wait_event(struct stream *stream, uint64_t handle,
                       const struct event *event);
void capture_forget_stream(const struct stream *stream);

#endif
