/* SPDX-License-Identifier: Apache-2.0
 * One operation of a GPU, or of a host thread on a GPU: what the simulator,
 * the labels, the collectives' pricing and the exports know. It is made from a
 * trace's record, by the capture library while the program runs, or from an
 * imported profiler trace. Plain data; owns nothing. */
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
    /* streams and events come and go */
    OP_STREAM_CREATE,
    OP_STREAM_DESTROY,
    OP_EVENT_CREATE,
    OP_EVENT_DESTROY,
    OP_HOST_JOIN, /* the thread goes on after another one's last call */
    OP_KINDS,
};

/* A send or a receive of an operation that is several of them. */
struct op_part {
    uint32_t peer; /* the other one's rank in the communicator */
    bool receive;
    uint64_t bytes;
};

struct op {
    enum op_kind kind;
    uint32_t device;   /* the process's own numbering */
    uint32_t thread;   /* host thread that called: 0, 1, 2 as they appear */
    uint32_t name;     /* id of the kernel's or call's name; 0: none */
    uint64_t stream;   /* handle as the program knows it; 0: the legacy one */
    uint64_t event;    /* of EVENT_RECORD, STREAM_WAIT, SYNC_EVENT; or 0 */
    bool blocking;     /* the call returns when the work is done: a copy */
    uint64_t host_ns;  /* when the host called, on the trace's clock */
    /* as measured, where the trace is an imported profile; otherwise 0 */
    bool measured;
    uint64_t duration_ns;
    uint64_t start_ns;   /* on the device, on the trace's clock */
    uint64_t latency_ns; /* from the call to the earliest start */
    uint64_t gap_ns;     /* the same from the end of the one before it */
    uint64_t held_ns;    /* how long a call that waits held the host ... */
    uint64_t return_ns;  /* ... and the part of it after the wait had ended */
    uint32_t joined;     /* of HOST_JOIN: the other thread */
    uint32_t module;   /* id of the nn.Module at work; 0: none */
    uint32_t operator; /* name id of PyTorch's operator at work; 0: none */
    uint32_t phase;    /* enum trace_phase_kind */
    uint64_t capture; /* of a graph's node: the capture it comes from; else 0 */
    uint64_t sequence; /* of a collective on its communicator, from 0 */
    /* of a group of sends and receives: each, in the order of the calls;
     * borrowed; none where the record is one alone */
    const struct op_part *parts;
    uint32_t part_count;

    /* the record that it was made from, with all fields of its kind (0 where
     * the record has fewer): op_as_copy(op)->bytes */
    enum trace_kind record;
    uint32_t field_count;   /* up to the last that is not 0 */
    const uint64_t *fields; /* borrowed: valid as long as the record is */
    const char *text; /* the record's, not terminated, or NULL; borrowed */
    uint32_t text_bytes;
};

/* The operation that a record of KIND with FIELDS, all of its kind's
 * (borrowed), is: its kind, device, name, stream, event and whether it blocks;
 * the rest is 0. OP_NONE where the kind is no operation. */
struct op op_of_record(enum trace_kind kind, const uint64_t *fields);

/* The fields of an operation whose `record` is of that kind, for every kind.
 * Borrowed, as `fields` is. */
#define X(number, kind_, name, fields_, text_)                                 \
    static inline const struct trace_##name *op_as_##name(const struct op *op) \
    {                                                                          \
        assert(op->record == TRACE_##kind_);                                   \
        return (const struct trace_##name *)op->fields;                        \
    }
TRACE_KINDS(X)
#undef X

#endif
