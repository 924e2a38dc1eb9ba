/* SPDX-License-Identifier: Apache-2.0
 * From a trace's records to operations, in the order in which the host called.
 *
 * Work recorded while a stream was captured was not carried out; it comes when
 * a GRAPH_LAUNCH launches it: the launch's own operation first, then one for
 * each node in the order of the capture, with the launch's device, thread and
 * time. Nodes of the stream that the capture began on have the launch's stream;
 * streams that joined it, and events recorded in it, have handles of their own
 * (OP_GRAPH_HANDLE is set) that no other operation has.
 *
 * Sends and receives of one ncclGroup on one communicator are one operation, of
 * the bytes of the busier direction: NCCL carries them out at once.
 *
 * Launches do not say which module they belong to. An operation's module and
 * operator are those of the thread's last allocation since it entered or left a
 * module: kernels follow the allocation of their results. Work in place without
 * an allocation has those of the operator before it. */
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

/* The next record of the trace, of whatever kind. */
void op_trace_add(struct op_trace *t, const struct trace_item *item);

/* The trace has ended: operations that were held back come now. */
void op_trace_end(struct op_trace *t);

/* The names that the records gave so far; borrowed. */
const struct trace_names *op_trace_names(const struct op_trace *t);

/* Gives them away, to be given to trace_names_fini. */
struct trace_names op_trace_names_take(struct op_trace *t);

#endif
