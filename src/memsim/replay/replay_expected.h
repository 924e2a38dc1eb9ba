/* SPDX-License-Identifier: Apache-2.0
 * The recording as the device: what the allocator did below since its last
 * request, which the engine's calls have to meet one by one. */
#ifndef MEMSIM_MEMSIM_REPLAY_EXPECTED_H
#define MEMSIM_MEMSIM_REPLAY_EXPECTED_H

#include "memsim/replay/replay.h"

struct expected {          /* zeroed but for the plan: empty */
    struct replay_op *ops; /* REPLAY_SEGMENT and REPLAY_FREE_DONE */
    size_t first, count, capacity;
    uint64_t progress;        /* bytes of the first map or unmap that are met */
    uint64_t index;           /* of the step in hand, for messages */
    struct replay_plan *plan; /* takes the first difference */
};

/* A device that answers what E says it answered then; where the engine asks
 * for anything else, that is a difference. */
struct alloc_driver expected_driver(struct expected *e);

void expected_add(struct expected *e, const struct replay_op *op);

/* The next segment operation, NULL where none is left. */
struct replay_op *expected_head(struct expected *e);

/* Is there one left of which IS is true? */
bool expected_any(const struct expected *e,
                  bool (*is)(const struct replay_op *));

/* Those that are left were not met, or are not of interest any more. */
void expected_reset(struct expected *e);
void expected_fini(struct expected *e);

/* Notes in the plan where the replay first differs from the recording. */
void expected_differ(struct expected *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
