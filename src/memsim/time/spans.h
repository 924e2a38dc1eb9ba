/* SPDX-License-Identifier: Apache-2.0
 * When a device was busy, with what, and how many of its SMs had work: sums
 * over parts of a timeline, be it simulated or measured. Pure. */
#ifndef MEMSIM_MEMSIM_TIME_SPANS_H
#define MEMSIM_MEMSIM_TIME_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "playback/simulation.h"

/* What an operation is to the breakdown of a step. */
enum span_kind { SPAN_COMPUTE, SPAN_COMM, SPAN_COPY, SPAN_KINDS };

struct span {
    uint64_t start_ns, end_ns;
    uint32_t fill; /* of the device's SMs, of SIM_WHOLE */
    uint8_t kind;  /* enum span_kind */
    uint8_t device;
};

/* Zeroed, it is empty. */
struct spans {
    struct span *all;
    uint64_t *last_ns; /* the latest end up to each; made by spans_sort */
    size_t count, capacity;
    uint64_t dropped; /* beyond SPANS_MAX */
};

#define SPANS_MAX 8000000

/* One operation; those that use no engine of the device are none. */
void spans_add(struct spans *s, const struct span *span);
/* To be called between the last spans_add and what follows. */
void spans_sort(struct spans *s);
void spans_fini(struct spans *s);

enum span_kind span_kind_of(enum sim_engine engine);

/* The parts of the time from FROM_NS to TO_NS. They add up to it, but for
 * overlapped_comm_ns, which is a part of compute_ns. */
struct span_parts {
    uint64_t compute_ns;         /* something computes */
    uint64_t overlapped_comm_ns; /* and a collective runs */
    uint64_t exposed_comm_ns;    /* a collective runs, nothing computes */
    uint64_t exposed_copy_ns;    /* only copies run */
    uint64_t idle_ns;
};
struct span_parts spans_parts(const struct spans *s, unsigned device,
                              uint64_t from_ns, uint64_t to_ns);

/* COUNT windows of WINDOW_NS from FROM_NS on; the last one ends at TO_NS. */
struct span_windows {
    uint64_t from_ns, to_ns, window_ns;
    size_t count;
};

/* Writes the share of the SMs that have work, on average over each of WINDOWS,
 * to FILLS: 0 to 1. An operation counts for the share that its grid can fill,
 * and all together for one at most. */
void spans_fill(const struct spans *s, unsigned device,
                const struct span_windows *windows, double *fills);

/* The same, of the share of each window in which something runs at all: what
 * Lumos calls the GPU's utilisation. */
void spans_busy(const struct spans *s, unsigned device,
                const struct span_windows *windows, double *shares);

#endif
