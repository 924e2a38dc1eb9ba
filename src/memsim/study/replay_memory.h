/* SPDX-License-Identifier: Apache-2.0
 * What `memsim replay` does with memory: recordings opened, replayed and timed
 * on one GPU. */
#ifndef MEMSIM_MEMSIM_STUDY_REPLAY_MEMORY_H
#define MEMSIM_MEMSIM_STUDY_REPLAY_MEMORY_H

#include "memsim/study/options.h"
#include "memsim/study/replay_what_if.h"
#include "memsim/report/text/replay_report.h"

#define REPLAY_GPU "h100-sxm-80gb" /* of a snapshot, which names none */

struct memory_question {
    uint64_t memory_bytes; /* 0: the GPU's */
    const char *torch;     /* NULL: the recording's, as is what follows */
    const char *sweep, *what_if;
    int addresses; /* index in "recorded|linux|ascending" */
    double fail_above_percent;
    uint32_t data_parallel; /* 0: as recorded */
    const char **confs;     /* of the allocator; none: the recording's */
    size_t conf_count, conf_capacity;
    bool settings_alone; /* of the first of `confs`; nothing else is tried */
    const struct study_options *options;
};

/* The recordings of a run, replayed on one GPU. Its report points into it, so
 * that it must not move. */
struct replay_memory {
    const struct memory_question *question;
    struct recording *recordings;
    struct changed *changed; /* zeroed without --what-if */
    size_t count;
    struct gpu gpu;
    bool has_gpu; /* else GPU is the recording's, and not known yet */
    struct replay_report report;
};

/* What the job of the trace PATH has code for, if its run is there; else
 * empty. */
struct capability_set replay_memory_code(const char *path);

/* Replays RUN on GPU; NULL: on the recording's, or a snapshot's stand-in.
 * Returns 0 with *M to be given to replay_memory_close, or -1 with
 * nothing to close. */
int replay_memory_open(struct replay_memory *m, const struct memory_question *q,
                       const struct run *run, const struct gpu *gpu,
                       char **command, struct err *err);

/* Gives M's report what was in memory at the peak (modules, categories, the
 * largest blocks), and what the job comes to after the recorded steps. Only of
 * traces that are replayed as they are. Returns whether nothing grows. */
bool replay_memory_outlook(struct replay_memory *m);

/* Gives M's report the times of its steps. Snapshots have none. Returns 0 or
 * -1. */
int replay_memory_time(struct replay_memory *m, struct err *err);
void replay_memory_close(struct replay_memory *m);

#endif
