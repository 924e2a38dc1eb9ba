/* SPDX-License-Identifier: Apache-2.0
 * The blocks of a replay over time, and the segments at its peak, as the page
 * of --html draws them. A recording has no modules and categories, but stacks.
 */
#ifndef MEMSIM_MEMSIM_RESULT_REPLAY_HISTORY_H
#define MEMSIM_MEMSIM_RESULT_REPLAY_HISTORY_H

#include "memsim/attribution/attribute.h"
#include "memsim/replay/recording.h"

/* Of REC, replayed as in its first row, on DEVICE: memory over time, the lives
 * of its blocks and, where it is the device that REC's report looks at, the
 * segments at the peak. All categories are "other". The caller passes it to
 * attribution_destroy. NULL with ERR set where REC cannot be replayed. */
struct attribution *replay_history_make(const struct recording *rec,
                                        unsigned device, struct err *err);

#endif
