/* SPDX-License-Identifier: Apache-2.0
 * A trace's records for the simulator: those that a plan kept, else the file.
 */
#ifndef MEMSIM_MEMSIM_TIME_SIMULATION_SOURCE_H
#define MEMSIM_MEMSIM_TIME_SIMULATION_SOURCE_H

#include "memsim/time/simulation_plan.h"
#include "playback/simulation.h"

struct simulation_source {
    const struct trace_kept *kept; /* NULL: it reads the file */
    struct trace_kept_cursor at;
    struct trace_reader reader;
};

/* What a plan has to keep for SINK, which may be NULL. */
enum simulation_keep simulation_keep_for(const struct simulation_sink *sink);

/* Opens PLAN's records, or the trace PATH where it has none or too few for
 * SINK. Both are borrowed. Returns 0, or -1 with nothing to close. */
int simulation_source_open(struct simulation_source *source, const char *path,
                           const struct simulation_plan *plan,
                           const struct simulation_sink *sink,
                           struct err *err);

/* The next record, as trace_reader_next. */
int simulation_source_next(struct simulation_source *source,
                           struct trace_item *item, struct err *err);
void simulation_source_close(struct simulation_source *source);

#endif
