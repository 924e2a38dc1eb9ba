/* SPDX-License-Identifier: Apache-2.0
 * A recording and one more step, whose input has another size: each of its
 * requests is as large as the same request of the recorded steps says by a line
 * or a parabola.
 *
 *     recorded  | 0 | 1 | 2 | 3 | 4 | 5 ...     n = 640, 832, 704, 1024
 *     played    | 0 | 1 | 2 | 3 | 4 | 4'| 4'    n = 4096
 */
#ifndef MEMSIM_MEMSIM_REPLAY_REPLAY_SCALE_H
#define MEMSIM_MEMSIM_REPLAY_REPLAY_SCALE_H

#include "memsim/replay/replay_repeat.h"

struct replay_steps {
    const uint64_t *begins; /* as of replay_repeat_create() */
    const uint64_t *sizes;  /* n of the step that each begins; 0: not known */
    size_t count;
};

/* As replay_repeat_create(), of STEPS; WANTED is n of the step that is played,
 * twice. Sets *SCALE to NULL where fewer than three steps ask for the same in
 * the same order, or a request has no law. */
int replay_scale_create(struct replay_repeat **scale,
                        const struct replay_source *source,
                        const struct replay_steps *steps, uint64_t wanted,
                        struct err *err);

#endif
