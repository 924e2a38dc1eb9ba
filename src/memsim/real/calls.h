/* SPDX-License-Identifier: Apache-2.0
 * The recorded calls of a trace, and the GPU's work that is a part of each:
 * what join.c needs to know before it writes the first record. */
#ifndef MEMSIM_MEMSIM_REAL_CALLS_H
#define MEMSIM_MEMSIM_REAL_CALLS_H

#include <stdbool.h>

#include "common/base/map.h"
#include "common/trace/trace_read.h"
#include "memsim/real/device_log.h"

struct real_record {
    uint64_t number, start_ns, end_ns;
    enum trace_kind kind; /* of the record behind the CALL */
    uint64_t group;       /* of a collective; 0: none */
    uint64_t capture;     /* that the work is a part of, or that is launched */
    uint32_t place;       /* among the works of the capture */
    struct device_work *works;
    size_t count;
};

/* A capture whose graph was launched: its works the first time. */
struct real_capture {
    uint32_t places; /* works that were captured */
    struct device_work *works;
    size_t count;
};

struct real_calls {
    struct real_record *all; /* as the trace has them */
    size_t count, capacity;
    struct map by_number; /* index + 1 */
    struct map captures;  /* struct real_capture by number */
    struct map captured;  /* of streams: the number of their capture */
    uint64_t name_most;   /* the highest id of a NAME */
    uint64_t latency_ns;  /* from a call to the earliest start of its work */
};

/* Reads the trace PATH. Returns 0 or -1. */
int real_calls_read(struct real_calls *calls, const char *path,
                    const struct device_log *log, struct err *err);
void real_calls_fini(struct real_calls *calls);

/* The record of the call NUMBER; NULL: it has none. */
struct real_record *real_calls_of(const struct real_calls *calls,
                                  uint64_t number);

/* Whether records of KIND are work of a device. */
bool real_is_work(enum trace_kind kind);

#endif
