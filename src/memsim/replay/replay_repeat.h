/* SPDX-License-Identifier: Apache-2.0
 * A recording whose last steps go on and on, as a source: what a job does that
 * is started for more steps than were recorded. Blocks that a step leaves
 * behind are left behind by each repetition, and one that it frees of the step
 * before is freed of the repetition before.
 *
 *     recorded   | 0 | 1 | 2 | 3 | 4 | 5 ...       (5 is not complete)
 *     played     | 0 | 1 | 2 | 3 | 4 |4'|4"|...    where 4 is like 3
 *                | 0 | 1 | 2 | 3 | 4 |3'|4'|3"|... where 3, 4 are like 1, 2
 */
#ifndef MEMSIM_MEMSIM_REPLAY_REPLAY_REPEAT_H
#define MEMSIM_MEMSIM_REPLAY_REPLAY_REPEAT_H

#include "memsim/replay/replay.h"

/* So many steps at most are repeated together. */
#define REPLAY_REPEAT_STEPS 8
/* Of so many begins can be made what that takes. */
#define REPLAY_REPEAT_BEGINS (2 * REPLAY_REPEAT_STEPS + 1)

struct replay_repeat;

/* SOURCE outlives the result, is not used by others meanwhile. BEGINS are the
 * indices, in the recording, of the records at which the last COUNT steps
 * begin; the last of those is replaced. Ends when MOST calls were repeated.
 * Sets *REPEAT to NULL where the steps are not alike. Returns 0 or -1. */
int replay_repeat_create(struct replay_repeat **repeat,
                         const struct replay_source *source,
                         const uint64_t *begins, size_t count, uint64_t most,
                         struct err *err);
void replay_repeat_destroy(struct replay_repeat *repeat); /* NULL is fine */

const struct replay_source *replay_repeat_source(struct replay_repeat *repeat);

/* How many steps were repeated as a whole before the call INDEX. */
uint64_t replay_repeat_whole(const struct replay_repeat *repeat,
                             uint64_t index);

#endif
