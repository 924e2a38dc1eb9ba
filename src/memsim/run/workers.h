/* SPDX-License-Identifier: Apache-2.0
 * Work in processes of its own, several at a time: the jobs of a sweep. */
#ifndef MEMSIM_MEMSIM_RUN_WORKERS_H
#define MEMSIM_MEMSIM_RUN_WORKERS_H

#include <stddef.h>

struct workers {
    size_t most; /* at a time; each has its part of this process's CPUs */
    /* In a process of its own: the work AT. Its result is the exit status. */
    int (*work)(void *context, size_t at);
    /* In this process, once the work AT has ended with STATUS, as a shell would
     * report it. Nothing more is begun where it returns another value than
     * 0. */
    int (*ended)(void *context, size_t at, int status);
    void *context;
};

/* Does the COUNT works of AT, in that order, and waits for all of them. A
 * signal to this process is passed on to those that run, and no other is begun
 * (spawn_signal). Returns 0, or the errno of the failure to start one. */
int workers_run(const struct workers *w, const size_t *at, size_t count);

#endif
