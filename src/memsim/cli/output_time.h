/* SPDX-License-Identifier: Apache-2.0
 * Predicted times for a result: the options, and the reading of traces. */
#ifndef MEMSIM_MEMSIM_CLI_OUTPUT_TIME_H
#define MEMSIM_MEMSIM_CLI_OUTPUT_TIME_H

#include "memsim/cli/output.h"
#include "timeline/delay.h"
#include "timeline/stragglers.h"
#include "memsim/time/job_change.h"
#include "memsim/time/timing.h"

/* The quantile of --quantile; 0: the mean. Returns 0 or -1. */
int output_time_quantile(const struct output_options *options,
                         double *quantile, struct err *err);

/* Are --fit, --scale and --host-speed as they should be? Returns 0 or -1. */
int output_time_check(const struct output_options *options, struct err *err);

/* What the traces are timed with. */
struct output_time {
    const struct output_options *options;
    struct simulation_options timeline;
    struct job_changes changes; /* of --change; the timeline points to them */
    struct delays delay_table;  /* likewise, of --delay */
    struct simulation_delays delays;
    struct cost_image *image;
    struct cluster cluster;
    bool has_cluster;
    bool changes_memory; /* the job's times are not those that are traced: how
                            firm they are is not said */
};

/* Readies *T for GPU, which is borrowed. Returns 0 with *T to be given to
 * output_time_fini, or -1 with ERR set and nothing to free. */
int output_time_init(struct output_time *t,
                     const struct output_options *options,
                     const struct gpu *gpu, struct err *err);
void output_time_fini(struct output_time *t);

/* --fail-slower: gives *RESULT, where it fits, the verdict of a limit that was
 * passed where its step takes too long. Returns 0, or -1 where that cannot be
 * said. */
int output_time_gate(const struct output_options *options,
                     struct result *result, struct err *err);

/* The GPU that the trace PATH was recorded on: that of the run that it is part
 * of, or else by its name in the catalogue. Returns 0 or -1. */
int output_time_gpu(const char *path, struct gpu *gpu, struct err *err);

/* A trace of a rank of a result. */
struct output_member {
    struct result_rank *rank;
    uint32_t process;                   /* see result_timeline */
    char *path;                         /* owned */
    const struct simulation_plan *plan; /* NULL: a pass makes it */
};

/* The traces of a job. Zeroed, there are none. */
struct output_members {
    struct output_member *all;
    size_t count, capacity;
};

void output_members_add(struct output_members *m, struct result_rank *rank,
                        uint32_t process, const char *path,
                        const struct simulation_plan *plan);
void output_members_fini(struct output_members *m);

/* Times the ranks of RESULT by their traces, all on one simulator, and writes
 * --kineto. RESULT gets the timelines for --perfetto. A rank with several
 * traces has the timing with the most work. A
 * trace that cannot be read becomes a note. Returns 0, or -1 where a file
 * cannot be written. */
int output_time_job(const struct output_time *t, struct result *result,
                    const struct output_members *members, struct err *err);

#endif
