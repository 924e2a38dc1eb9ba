/* SPDX-License-Identifier: Apache-2.0
 * Ranks that memsim should run because they differ from those that it runs
 * (memsim run --ranks auto): told in the file SESSION_AXES, after which memsim
 * runs the job again (memsim/run/rank_axes.h). Of ranks that the user named it
 * says for whom they stand. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_DIFFER_H
#define MEMSIM_CAPTURE_CORE_RUN_DIFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "common/trace/rank_axis.h"

/* Whether memsim chooses the ranks. */
CORE_API bool memsim_ranks_are_chosen(void);

/* The COUNT RANKS of the world, at equal distances (NULL: they are all of it,
 * or it is not known which), differ by KIND, RANK_AXIS_... of session.h. PLACE:
 * the program's line, or "". Returns whether memsim chooses the ranks and has
 * to run others. Ranks that the user named stand for others by their places
 * from then on. */
CORE_API bool memsim_ranks_differ(const uint32_t *ranks, uint32_t count,
                                  const char *kind, const char *place);

/* This process uses the GPU CARD of the session. Where it is another rank's,
 * all ranks of the node have to be run. */
void ranks_use(uint32_t card);

/* RANK differs from the one below it. */
CORE_API void memsim_rank_differs(uint32_t rank, const char *place);

/* The one of COUNT RANKS that run, ascending, that does what RANK does, by the
 * axes along which memsim knows that ranks differ; and the lowest rank with
 * RANK's places on these (common/trace/rank_axis.h). */
CORE_API uint32_t memsim_ranks_stand(uint32_t rank, const uint32_t *ranks,
                                     uint32_t count);
CORE_API uint32_t memsim_ranks_first(uint32_t rank);

/* Writes the axes that were known when this process began to AXES, without kind
 * and place. Returns how many. */
CORE_API uint32_t memsim_ranks_axes(struct rank_axis axes[RANK_AXES]);

/* RANK_AXIS_AGAIN and SESSION_DEVICES, for Python. */
extern CORE_API const int memsim_ranks_again, memsim_ranks_most;

#endif
