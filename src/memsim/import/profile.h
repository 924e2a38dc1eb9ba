/* SPDX-License-Identifier: Apache-2.0
 * An imported profile of one rank as a graph: what the GPU did, which host
 * calls asked for it, and what waited for what. Times are nanoseconds on the
 * profile's own clock.
 *
 * Four kinds of dependency (the names are those of doc/traces.md):
 *
 *   host-host      call.previous (same thread), call.join (another thread)
 *   host-device    op.call: the call that launched the operation
 *   device-device  op.previous (same stream), op.after (another stream)
 *   device-host    call.waits: the operation that the call returned after
 *
 * A profile does not say which event a stream or a host waited for. op.after,
 * call.waits and call.join are inferred from times (profile_link.c,
 * profile_hosts.c). */
#ifndef MEMSIM_MEMSIM_IMPORT_PROFILE_H
#define MEMSIM_MEMSIM_IMPORT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/base/err.h"
#include "common/base/map.h"
#include "common/base/range.h"
#include "common/base/text_begins.h"
#include "common/profile/kineto_read.h"
#include "shapes/shapes.h"

#define PROFILE_NONE UINT32_MAX /* an index that points nowhere */

/* What a collective moved, where the profile says so. */
struct profile_collective {
    uint32_t name, group; /* names; PROFILE_NONE: not said */
    uint32_t type;        /* "Float", "BFloat16", ... as a name */
    int64_t in_elements, out_elements, group_size;
    struct range ranks; /* of the group, in the job; count 0: not known */
};

/* A kernel, copy or set. */
struct profile_op {
    int64_t start_ns, duration_ns;
    int64_t gap_ns; /* start after all known dependencies: kept as measured */
    /* Written by memsim's own export; KINETO_NONE: the medians are taken. */
    int64_t launched_ns; /* its launch arrived at the GPU */
    int64_t handover_ns; /* at least, after op.previous */
    int64_t correlation;
    int64_t operator; /* its External id; KINETO_NONE: not said */
    uint64_t bytes;
    enum kineto_category category;
    uint32_t name;
    uint32_t family;     /* a name; PROFILE_NONE: not said */
    uint32_t work;       /* shapes_keep's number; PROFILE_NONE: not said */
    uint32_t stream;     /* index into streams */
    uint32_t call;       /* PROFILE_NONE: the call was dropped */
    uint32_t previous;   /* on its stream */
    uint32_t after;      /* on another stream, or PROFILE_NONE */
    uint32_t collective; /* index into collectives, or PROFILE_NONE */
    uint32_t grid[3], block[3], registers, shared_bytes;
};

/* A call of the CUDA runtime or driver. */
struct profile_call {
    int64_t start_ns, duration_ns;
    int64_t correlation;
    uint32_t name;
    uint32_t thread;   /* index into threads */
    uint32_t previous; /* on its thread, or PROFILE_NONE */
    uint32_t join;     /* call of another thread that came before, likewise */
    uint32_t waits;    /* op that it returned after, likewise */
    bool polled;       /* queries of an event came before it: the wait did */
    int64_t profiler_ns; /* that the profiler took of its thread up to it */
    uint32_t ops;      /* operations that it launched */
};

/* An operator of PyTorch's: when it began. */
struct profile_operator {
    int64_t start_ns;
    uint32_t thread; /* index into threads */
};

/* A gradient that autograd has accumulated: when it was ready. */
struct profile_gradient {
    int64_t ns;
    uint64_t elements;
    uint32_t thread; /* index into threads */
    uint8_t bytes;   /* of an element */
};

/* A range that the program named: a profiler step, for one. */
struct profile_mark {
    int64_t start_ns, duration_ns;
    uint32_t name, thread;
};

struct profile_stream {
    int64_t device, stream; /* as the profile numbers them */
    uint32_t last;          /* op, while linking */
};

struct profile_thread {
    int64_t process, thread;
    uint32_t last; /* call, while linking */
};

#define PROFILE_ARRAY(type, name)                                              \
    type *name;                                                                \
    size_t name##_count, name##_capacity

struct profile {
    const char *path; /* borrowed */
    struct kineto_info info;
    PROFILE_ARRAY(struct profile_op, ops);     /* by start */
    PROFILE_ARRAY(struct profile_call, calls); /* by start */
    PROFILE_ARRAY(struct profile_mark, marks); /* by start */
    PROFILE_ARRAY(struct profile_operator, operators); /* by start */
    PROFILE_ARRAY(struct profile_gradient, gradients);
    PROFILE_ARRAY(struct profile_collective, collectives);
    uint64_t untimed; /* events of the GPU without a time: left out */
    PROFILE_ARRAY(struct profile_stream, streams);
    PROFILE_ARRAY(struct profile_thread, threads);
    PROFILE_ARRAY(char *, names);
    struct map name_ids, stream_ids, thread_ids;
    struct shapes shapes; /* of the operators */

    /* what linking found */
    int64_t latency_ns; /* median from call to start on an idle stream */
    int64_t handover_ns; /* median between two operations of a busy stream */
    int64_t skew_ns;    /* added to the GPU's clock: it ran behind */
    uint64_t dropped_calls;   /* operations without a call */
    uint64_t inferred_streams; /* op.after found */
    uint64_t inferred_waits, inferred_joins;
    int64_t operator_ns; /* that the profiler takes for an operator or a call */
    int64_t profiler_ns; /* for all of them; and the host's time with it */
    int64_t host_ns;
    int64_t device_ns, shaped_ns; /* of operations; of those whose work the
                                     models know (by profile_write) */
    int64_t gaps_ns; /* sum of op.gap_ns */
    uint64_t gaps;   /* operations with one */
};

/* Is NAME the name of a range that torch.profiler counts steps by? */
static inline bool profile_is_step(const char *name)
{
    return !text_begins(name, "ProfilerStep") == 0;
}

/* Is the file PATH a database, as Nsight Systems exports it? */
bool profile_is_database(const char *path);

/* How many ranks the file PATH has: 1, or in an export of Nsight Systems the
 * processes that used a GPU. Returns 0 or -1. */
int profile_ranks(const char *path, uint32_t *ranks, struct err *err);

/* Reads RANK (from 0) of the Kineto trace or Nsight Systems export PATH into
 * *P, events sorted, nothing linked. Returns 0, or -1 with ERR set;
 * profile_fini either way. */
int profile_read(struct profile *p, const char *path, uint32_t rank,
                 struct err *err);

/* Finds every dependency. */
void profile_link(struct profile *p);

/* The parts of it: calls inside calls are folded, operations find their calls,
 * the GPU's clock is put right; then streams; then hosts; then what the
 * profiler took of their time. */
void profile_link_calls(struct profile *p);
void profile_link_streams(struct profile *p);
void profile_link_hosts(struct profile *p);
void profile_link_cost(struct profile *p);

void profile_fini(struct profile *p);

/* Does the file say when OP's launch arrived and how long it paused? */
static inline bool profile_op_is_exact(const struct profile_op *op)
{
    return op->launched_ns != KINETO_NONE && op->handover_ns != KINETO_NONE;
}

/* From OP's call to its earliest start; and from the end of the operation
 * before it. */
int64_t profile_op_latency(const struct profile *p,
                           const struct profile_op *op);
int64_t profile_op_handover(const struct profile *p,
                            const struct profile_op *op);

/* Finds the operation that ended last in (AFTER_NS, UNTIL_NS]. ENDS holds all
 * operations by their end. PROFILE_NONE: none. */
uint32_t profile_op_ended(const struct profile *p, const uint32_t *ends,
                          int64_t after_ns, int64_t until_ns);

/* All operations' indices by their end; the caller frees it. */
uint32_t *profile_ends(const struct profile *p);

static inline int64_t profile_op_end(const struct profile_op *op)
{
    return op->start_ns + op->duration_ns;
}

static inline int64_t profile_call_end(const struct profile_call *call)
{
    return call->start_ns + call->duration_ns;
}

#endif
