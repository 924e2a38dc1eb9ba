/* SPDX-License-Identifier: Apache-2.0
 * One operation of a GPU, or of a host thread on a GPU. The simulator, the
 * labels, the cost model of collectives and the exports read it. It is made
 * from a trace's record, by the capture library while the program runs, or
 * from an imported profiler trace. Plain data; owns nothing. */
#ifndef MEMSIM_COMMON_TRACE_OP_H
#define MEMSIM_COMMON_TRACE_OP_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/trace/trace.h"

enum op_kind {
    OP_NONE,
    /* work on a stream */
    OP_LAUNCH,
    OP_GEMM,
    OP_CONVOLUTION,
    OP_ATTENTION,
    OP_LIBRARY_CALL,
    OP_COPY,
    OP_SET,
    OP_HOST_FUNCTION,
    OP_COLLECTIVE,
    OP_GRAPH_LAUNCH,
    /* order between streams */
    OP_EVENT_RECORD,
    OP_STREAM_WAIT,
    /* the host waits */
    OP_SYNC_STREAM,
    OP_SYNC_DEVICE,
    OP_SYNC_EVENT,
    OP_DEVICE_MALLOC, /* a driver call that may wait for the device */
    OP_DEVICE_FREE,
    /* streams and events are created and destroyed */
    OP_STREAM_CREATE,
    OP_STREAM_DESTROY,
    OP_EVENT_CREATE,
    OP_EVENT_DESTROY,
    OP_HOST_JOIN, /* the thread continues after another one's last call */
    OP_KINDS,
};

/* One send or receive of an operation that consists of several. */
struct op_part {
    uint32_t peer; /* the other side's rank in the communicator */
    bool receive;
    uint64_t bytes;
};

struct op {
    enum op_kind kind;
    uint32_t device;   /* the process's own numbering */
    uint32_t thread;   /* host thread that called: 0, 1, 2 as they appear */
    uint32_t name;     /* id of the kernel's or call's name; 0: none */
    uint64_t stream;   /* the program's handle; 0: the legacy stream */
    uint64_t event;    /* of EVENT_RECORD, STREAM_WAIT, SYNC_EVENT; or 0 */
    bool blocking;     /* a copy whose call returns when the work is done */
    uint64_t host_ns;  /* when the host called, on the trace's clock */
    /* as measured, where the trace is an imported profile; otherwise 0 */
    bool measured;
    uint64_t duration_ns;
    uint64_t start_ns;   /* on the device, on the trace's clock */
    uint64_t latency_ns; /* from the call to the earliest start */
    uint64_t gap_ns;     /* from the previous work's end to that start */
    uint64_t held_ns;    /* how long a call that waits blocked the host ... */
    uint64_t return_ns;  /* ... and the part of it after the wait had ended */
    uint64_t profiler_ns; /* what the profiler took of the host's time since
                             the thread's operation before */
    uint32_t family; /* name id of the work's family; 0: not said */
    uint32_t joined;     /* of HOST_JOIN: the other thread */
    uint32_t module;   /* id of the running nn.Module; 0: none */
    uint32_t operator; /* name id of PyTorch's running operator; 0: none */
    uint32_t phase;    /* enum trace_phase_kind */
    uint64_t capture; /* of a graph's node: the capture that made it; else 0 */
    uint64_t sequence; /* of a collective on its communicator, from 0 */
    /* the sends and receives of a group, in the order of the calls; borrowed;
     * none if the record is a single operation */
    const struct op_part *parts;
    uint32_t part_count;

    /* the record that it was made from, with all fields of its kind (0 if
     * the record has fewer): op_as_copy(op)->bytes */
    enum trace_kind record;
    uint32_t field_count;   /* up to the last that is not 0 */
    const uint64_t *fields; /* borrowed: valid as long as the record is */
    const char *text; /* the record's, not terminated, or NULL; borrowed */
    uint32_t text_bytes;
};

/* Makes an operation from a record of KIND with FIELDS (all fields of the kind;
 * borrowed). Sets its kind, device, name, stream, event and `blocking`; the
 * rest is 0. Its kind is OP_NONE if KIND is no operation. */
struct op op_of_record(enum trace_kind kind, const uint64_t *fields);

/* For every kind: the fields of an operation whose `record` is of that kind.
 * Borrowed, as `fields` is. */
#define X(number, kind_, name, use_, fields_, text_)                           \
    static inline const struct trace_##name *op_as_##name(const struct op *op) \
    {                                                                          \
        assert(op->record == TRACE_##kind_);                                   \
        return (const struct trace_##name *)op->fields;                        \
    }
TRACE_KINDS(X)
#undef X

#endif
