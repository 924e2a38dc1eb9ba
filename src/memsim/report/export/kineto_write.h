/* SPDX-License-Identifier: Apache-2.0
 * The predicted timeline of a rank as a trace in the format of PyTorch's
 * profiler (Kineto): kernels, copies and collectives by stream, the calls that
 * launched them with flows between the two, modules, steps, and the
 * allocator's counters. ui.perfetto.dev shows it, and tools that read the
 * profiler's traces do. All times are the simulation's. */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_KINETO_WRITE_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_KINETO_WRITE_H

#include "memsim/report/report.h"
#include "memsim/result/result.h"
#include "memsim/time/simulation_read.h"

/* Of a longer run, so many events are written. */
#define KINETO_EVENTS 4000000

struct kineto_job {
    const struct result *result;
    const struct result_rank *rank;
    const struct gpu *gpu;
};

/* Starts a trace of JOB, which is borrowed, in the file EVENTS, which is empty,
 * open for reading and writing, and the writer's from now on. Sets *SINK to
 * what the simulation of the rank is to be given. Returns the writer for
 * kineto_end. */
struct kineto_writer *kineto_begin(const struct kineto_job *job, FILE *events,
                                   struct simulation_sink *sink);

/* Writes the trace, whose simulation gave S, to PATH, compressed where that
 * ends in .gz, and frees W. Where S is NULL it only frees W. Returns 0 or
 * -1. */
int kineto_end(struct kineto_writer *w, const struct simulation *s,
               const char *path, struct err *err);

/* PATH, with the rank in it where there are several: "x-rank3.json". The caller
 * frees it. */
char *kineto_path(const struct result *result, const struct result_rank *rank,
                  const char *path);

#endif
