/* SPDX-License-Identifier: Apache-2.0
 * What the traces of a job are timed with: a study's options, read. */
#ifndef MEMSIM_MEMSIM_STUDY_STUDY_TIME_H
#define MEMSIM_MEMSIM_STUDY_STUDY_TIME_H

#include "fits/cluster.h"
#include "memsim/study/options.h"
#include "memsim/time/job_change.h"
#include "memsim/time/timing.h"
#include "playback/delay.h"
#include "playback/stragglers.h"

struct study_time {
    const struct study_options *options;
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
 * study_time_fini, or -1 with ERR set and nothing to free. */
int study_time_init(struct study_time *t, const struct study_options *options,
                    const struct gpu *gpu, struct err *err);
void study_time_fini(struct study_time *t);

/* The name of the GPU that the trace PATH was recorded on into NAME, of BYTES.
 * Returns 0 or -1. */
int study_gpu_name(const char *path, char *name, size_t bytes, struct err *err);

/* The GPU that the trace PATH was recorded on: that of the run that it is part
 * of, or else by its name in the catalogue. Returns 0 or -1. */
int study_gpu(const char *path, struct gpu *gpu, struct err *err);

#endif
