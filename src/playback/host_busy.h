/* SPDX-License-Identifier: Apache-2.0
 * How busy the CPUs were while a trace's steps ran. Time in which a thread had
 * no CPU is not in the trace's times, and the least of many steps leaves out
 * most of what comes and goes; but where others compute all the time, on the
 * same cores and through the same caches, each step is slower by as much, and
 * no step of the trace shows it. */
#ifndef MEMSIM_PLAYBACK_HOST_BUSY_H
#define MEMSIM_PLAYBACK_HOST_BUSY_H

#include "common/trace/step.h"

/* Shares of a time, from 0 to 1. */
struct host_busy {
    double waited; /* the program's thread was ready to run and had no CPU, of
                      the time in which it ran or was ready */
    double others; /* other processes ran, those that the program started left
                      out: of the time of all CPUs */
    bool known;    /* both are 0 where Linux did not say */
};

/* Collects the looks while a trace is read. Zeroed: none. */
struct host_looks {
    struct host_look {
        uint64_t record; /* its ordinal */
        uint32_t thread;
        struct trace_host_cpus cpus;
    } * looks;
    size_t count, capacity;
};

/* Takes the next record, of any kind. */
void host_looks_take(struct host_looks *l, const struct trace_item *item);

/* From the first to the last step of TYPICAL, which has a flag for each of
 * STEPS. Frees the memory of L. */
struct host_busy host_busy_make(struct host_looks *l,
                                const struct step_list *steps,
                                const bool *typical);

#endif
