/* SPDX-License-Identifier: Apache-2.0
 * Makes operations from a trace's records, in the order of the host's calls.
 *
 * Work recorded while a stream was captured did not run then. It is reported
 * at each GRAPH_LAUNCH that launches it: first the launch's own operation, then
 * one for each node in the order of the capture, with the launch's device,
 * thread and time. Nodes of the stream on which the capture began have the
 * launch's stream. Streams that joined it, and events recorded in it, have
 * handles of their own (OP_GRAPH_HANDLE is set) that no other operation has.
 *
 * Sends and receives of one ncclGroup on one communicator are one operation
 * with the bytes of the busier direction: NCCL runs them at the same time.
 *
 * Launches do not record their module. An operation gets the module and the
 * operator of its thread's last allocation since the thread entered or left a
 * module, because kernels follow the allocation of their results. In-place work
 * without an allocation gets those of the previous operator. */
#ifndef MEMSIM_COMMON_TRACE_OP_TRACE_H
#define MEMSIM_COMMON_TRACE_OP_TRACE_H

#include "common/trace/op.h"
#include "common/trace/trace_read.h"

#define OP_GRAPH_HANDLE (UINT64_C(1) << 63)

/* Gets each operation; OP and what it borrows are valid during the call. */
typedef void op_take(void *context, const struct op *op);

struct op_trace;

struct op_trace *op_trace_create(op_take *take, void *context);
void op_trace_destroy(struct op_trace *t);

/* Adds the trace's next record, of any kind. */
void op_trace_add(struct op_trace *t, const struct trace_item *item);

/* Ends the trace: passes on the operations that were held back. */
void op_trace_end(struct op_trace *t);

/* The names of the NAME records so far; borrowed. */
const struct trace_names *op_trace_names(const struct op_trace *t);

/* Moves them to the caller, who passes them to trace_names_fini. */
struct trace_names op_trace_names_take(struct op_trace *t);

#endif
