/* SPDX-License-Identifier: Apache-2.0
 * The options of memsim replay. */
#ifndef MEMSIM_MEMSIM_CLI_REPLAY_OPTIONS_H
#define MEMSIM_MEMSIM_CLI_REPLAY_OPTIONS_H

#include "memsim/cli/output.h"
#include "memsim/study/replay_memory.h"

struct replay_options {
    const char *gpu;
    const char *alloc_conf; /* the last; memory.confs has all */
    const char *second;
    const char *price;      /* file of --price; NULL: none */
    double budget;          /* 0: none */
    bool models, gpu_asked; /* --gpu was given, not a cluster's taken */
    int without_profiler;
    const char *average;
    uint32_t microbatches, node_ranks;
    const char *schedule;
    struct memory_question memory;
    struct output_options output;
    char **invocation; /* the whole command line */
};

#endif
