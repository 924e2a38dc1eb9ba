/* SPDX-License-Identifier: Apache-2.0
 * A simulated timeline kept in memory: operations, calls of the host, and when
 * the host comes to each moment of the recording. For --perfetto, the page,
 * Chakra and lists of dependencies. */
#ifndef MEMSIM_MEMSIM_TIME_TIME_LOG_H
#define MEMSIM_MEMSIM_TIME_TIME_LOG_H

#include "memsim/attribution/module_table.h"
#include "memsim/time/simulation_read.h"

#define TIME_LOG_ALL SIMULATION_NO_STEP /* every step */

/* So many operations and so many calls are kept, the first ones. */
#define TIME_LOG_MAX 500000

/* From the start of the process until RECORDED_NS of its trace's clock, the
 * simulated host took NS. */
struct time_log_tick {
    uint64_t recorded_ns, ns;
};

struct time_log {
    struct simulation simulation; /* its steps and their moments */
    struct simulation_op *ops;    /* by tag */
    struct simulation_call *calls; /* by number */
    struct time_log_tick *ticks;  /* both times increase */
    size_t op_count, call_count, tick_count;
    uint64_t ops_dropped, calls_dropped;
    struct trace_names names;
    struct module_table modules;
    uint64_t pid;
    uint64_t first_ns; /* of the trace's clock: the timeline's 0 */
};

/* A timeline that is being made while its trace is simulated: STEP of it, or
 * TIME_LOG_ALL. *SINK is what the simulation is to be given. */
struct time_keeper *time_keeper_create(uint32_t step,
                                       struct simulation_sink *sink);
/* Ends it: returns the timeline, with a copy of the simulation's result S, to
 * be given to time_log_destroy; NULL where S or K is NULL. K is freed. */
struct time_log *time_keeper_end(struct time_keeper *k,
                                 const struct simulation *s);

void time_log_destroy(struct time_log *log); /* NULL is fine */

/* When the simulated host comes to RECORDED_NS of the trace's clock. Between
 * two records it goes on evenly. */
uint64_t time_log_at(const struct time_log *log, uint64_t recorded_ns);

/* The operation of that tag, the call of that number; NULL: it is not kept. */
const struct simulation_op *time_log_op(const struct time_log *log,
                                        uint64_t tag);
const struct simulation_call *time_log_call(const struct time_log *log,
                                            uint64_t number);

/* What PyTorch's profiler calls an operation: "Memcpy HtoD (Pinned -> Device)",
 * "ncclDevKernel_AllReduce", a kernel's demangled name. */
void time_log_op_name(const struct simulation_op *op,
                      const struct trace_names *names, char *text,
                      size_t size);
/* The function of the CUDA runtime that made a call of KIND. */
const char *time_log_call_name(enum op_kind kind);

/* The number by which the profiler would show the Nth stream that a process
 * uses, from 0 on; the default stream is 7. */
#define TIME_LOG_STREAM_DEFAULT 7

/* Numbers of streams as they come. Zeroed, it is empty. */
struct time_log_streams {
    struct map numbers; /* by handle and device, + 1 */
    uint32_t count;
};
/* *IS_NEW: it had no number before. */
uint32_t time_log_stream(struct time_log_streams *s, uint32_t device,
                         uint64_t stream, bool *is_new);
void time_log_streams_fini(struct time_log_streams *s);

#endif
