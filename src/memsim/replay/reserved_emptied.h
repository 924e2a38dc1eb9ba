/* SPDX-License-Identifier: Apache-2.0
 * When a convolution's plan may not have got its workspace. PyTorch tries the
 * plans of a convolution's first call one by one (try_plans, Conv_v8.cpp), and
 * a workspace that cannot be had empties its cache. */
#ifndef MEMSIM_MEMSIM_REPLAY_RESERVED_EMPTIED_H
#define MEMSIM_MEMSIM_REPLAY_RESERVED_EMPTIED_H

#include "memsim/replay/replay.h"

#define RESERVED_MOMENTS 16

/* The first calls of SOURCE's convolutions whose workspace has no certain size,
 * or RESERVED_MOMENTS of them, evenly spread. */
struct reserved_moments {
    size_t count;
    struct reserved_moment {
        uint64_t index; /* of the step that asks for the workspace */
        unsigned device;
    } at[RESERVED_MOMENTS];
};

/* Fills *M. 0 or -1. */
int reserved_moments_find(const struct replay_source *source,
                          struct reserved_moments *m, struct err *err);

/* Makes *PLAN, to be ended by replay_plan_fini, BASE with the cache of its
 * device emptied at MOMENT. Its peaks and statistics are BASE's. */
void reserved_moment_plan(const struct replay_plan *base,
                          const struct reserved_moment *moment,
                          struct replay_plan *plan);

#endif
