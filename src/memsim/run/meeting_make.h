/* SPDX-License-Identifier: Apache-2.0
 * The file in which the clocks of a job's ranks meet (common/trace/meeting.h).
 */
#ifndef MEMSIM_MEMSIM_RUN_MEETING_MAKE_H
#define MEMSIM_MEMSIM_RUN_MEETING_MAKE_H

#include "memsim/run/launch.h"

/* Makes PATH, for the ranks of LAUNCH. Returns 0, or -1 with errno set. */
int meeting_make(const struct launch *launch, const char *path);

#endif
