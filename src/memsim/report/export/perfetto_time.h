/* SPDX-License-Identifier: Apache-2.0
 * The predicted timeline in a Perfetto trace: a track for each stream of a GPU
 * and for the CUDA calls of each host thread, an arrow from each launch to its
 * operation, and the steps. */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_PERFETTO_TIME_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_PERFETTO_TIME_H

#include "memsim/report/export/perfetto.h"
#include "memsim/result/result.h"

/* From now on TO takes times of the recording of LOG; NULL: as they are. */
void perfetto_time_clock(struct perfetto *to, const struct time_log *log);

/* The first moment of RESULT's timelines, on the clock of the recordings;
 * UINT64_MAX: there are none. */
uint64_t perfetto_time_start(const struct result *result);

/* Writes the timelines of RANK, of which there may be none. */
void perfetto_time_write(struct perfetto *to, const struct result *result,
                         unsigned rank);

#endif
