/* SPDX-License-Identifier: Apache-2.0
 * Between what the peak of reserved memory may lie on a GPU: it depends on the
 * order of the driver's addresses, and on workspaces whose sizes are not known.
 * Where the largest would not fit beside what PyTorch has cached, it also
 * depends on when the cache was emptied. */
#ifndef MEMSIM_MEMSIM_REPLAY_RESERVED_RANGE_H
#define MEMSIM_MEMSIM_REPLAY_RESERVED_RANGE_H

#include "memsim/replay/recording.h"

struct reserved_range { /* zeroed: not known */
    uint64_t least_bytes, most_bytes;
};

/* Replays REC in these ways and fills RANGES, of its devices. 0 or -1. */
int reserved_range_find(const struct recording *rec,
                        struct reserved_range ranges[REPLAY_DEVICES],
                        struct err *err);

/* Is it wide enough to be told? */
bool reserved_range_matters(const struct reserved_range *r);

#endif
