/* SPDX-License-Identifier: Apache-2.0
 * What is known of a run that is going on: from its session, and from what its
 * first process has written to its trace so far. */
#ifndef MEMSIM_MEMSIM_CLI_LIVE_STATUS_H
#define MEMSIM_MEMSIM_CLI_LIVE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trace/session.h"
#include "common/trace/step.h"
#include "common/trace/trace_read.h"

#define LIVE_LINES      2
#define LIVE_LINE_BYTES 160

/* The steps of a trace that is being written. Zeroed: none yet. */
struct live_steps {
    bool open, failed;
    struct trace_reader reader;
    struct step_tracker tracker;
    char *path;
    unsigned steps;    /* that have begun after the first */
    uint64_t first_ns; /* predicted time at which the first of them began */
    uint64_t last_ns;  /* ... and the last */
};

/* Reads on in the trace PATH, of a process whose predicted time is AHEAD_NS
 * ahead of this machine's. */
void live_steps_read(struct live_steps *s, const char *path,
                     uint64_t ahead_ns);
void live_steps_fini(struct live_steps *s);

/* What SESSION's run has come to, as LIVE_LINES lines; NOW_NS: the time of
 * CLOCK_MONOTONIC. */
void live_status_write(const struct session *session,
                       const struct live_steps *steps, uint64_t now_ns,
                       char lines[LIVE_LINES][LIVE_LINE_BYTES]);

#endif
