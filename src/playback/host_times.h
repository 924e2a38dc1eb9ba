/* SPDX-License-Identifier: Apache-2.0
 * The host's times of a trace, cleaned of what this machine did beside.
 *
 * Steps that make the same calls need the same time for them; what differs from
 * one to the next is mostly other processes, page faults, the garbage
 * collector: it only ever adds. So the time before the i-th call is taken to be
 * the least of those of all such steps (warm-up left out), where there are at
 * least two; and at most three times the median of the gaps between calls of
 * the same two kinds and names, of which a model with many layers has many. The
 * last step ends with its optimizer: its calls are the first ones of the
 * others. */
#ifndef MEMSIM_PLAYBACK_HOST_TIMES_H
#define MEMSIM_PLAYBACK_HOST_TIMES_H

#include "common/trace/op_trace.h"
#include "common/trace/step.h"
#include "playback/host_busy.h"

struct host_times {
    bool *typical;    /* of each step: its times are the least ones */
    uint64_t *gaps;   /* before each call of such a step */
    size_t gap_count; /* so many calls */
    size_t steps;     /* of which they are the least; 0: nothing is cleaned */
    double spread;    /* how much longer the median of these is than the least:
                         0.2 is 20% */
    struct host_busy busy; /* while they ran; set by who makes the times */
    uint64_t after;   /* from the last call to the step's end */
    bool dropped;     /* too many calls: nothing is cleaned */
};

/* Collects calls while a trace is read for the first time. */
struct host_calls {
    struct host_call {
        uint64_t record, ns;
        uint64_t what; /* the same for calls of the same kind and name */
    } * calls;
    size_t count, capacity;
    uint64_t record; /* to be set: the record that is read */
    bool dropped;
};

/* An op_take, with a struct host_calls. */
void host_calls_take(void *calls, const struct op *op);

/* Is OP a call that steps have in common? A graph's node is no call of its own,
 * and memory is taken from the driver now and then. */
static inline bool host_call_is(const struct op *op)
{
    return !op->capture && op->kind < OP_DEVICE_MALLOC;
}

/* Makes *T of CALLS, whose memory it frees. To be given to host_times_fini. */
void host_times_make(struct host_times *t, struct host_calls *calls,
                     const struct step_list *steps);
void host_times_fini(struct host_times *t);

#endif
