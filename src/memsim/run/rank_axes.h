/* SPDX-License-Identifier: Apache-2.0
 * The ranks that `--ranks auto' runs. Ranks of a large job lie in a mesh. Along
 * most of its axes they are alike: data parallel, tensor parallel. Along others
 * they differ: pipeline stages send each other messages, experts get unequal
 * shares, ranks of a node use one another's GPUs. Which axes these are shows in
 * what the ranks do, and the processes write it to the file SESSION_AXES, a
 * line each:
 *
 *   axis STRIDE SIZE messages|sizes|gpus PLACE
 *   rank RANK PLACE        (it differs from the rank below it)
 *
 * One rank is run for each combination of places (common/trace/rank_axis.h).
 * Where the user names the ranks, axes only say for whom they stand. */
#ifndef MEMSIM_MEMSIM_RUN_RANK_AXES_H
#define MEMSIM_MEMSIM_RUN_RANK_AXES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/rank_set.h"
#include "common/trace/rank_axis.h"

#define RANK_AXES_ALONE 8 /* single ranks that differ */

struct rank_axes {
    struct rank_axis axis[RANK_AXES];
    uint32_t count;
    uint32_t alone[RANK_AXES_ALONE], alone_count;
    char alone_place[64];
    uint32_t left_out; /* axes for which there are too many ranks */
};

/* Adds what SESSION_AXES of DIRECTORY says of a job of WORLD ranks, if at most
 * MOST ranks have to be run for it. Returns whether there is something new. */
bool rank_axes_read(struct rank_axes *axes, const char *directory,
                    uint32_t world, uint32_t most);

/* Adds to RANKS those to run of WORLD: the first, the last, and one for each
 * combination of places; without axes rank 1, too, which neither does what the
 * first alone does nor has the last one's smaller shard. */
void rank_axes_ranks(const struct rank_axes *axes, uint32_t world,
                     struct rank_set *ranks);

/* Those of RANKS, at most SESSION_RANKS, that stand for the ranks of WORLD, by
 * rank; the caller frees them. */
uint32_t *rank_axes_stands(const struct rank_axes *axes,
                           const struct rank_set *ranks, uint32_t world);

/* "32:4,1:8", which the caller frees. */
char *rank_axes_text(const struct rank_axes *axes);

#endif
