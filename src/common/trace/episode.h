/* SPDX-License-Identifier: Apache-2.0
 * Parts of a run that are no training step: an evaluation, a generation, a
 * checkpoint that is saved or loaded. The program's own calls say when they
 * begin and end (capture/py/episodes.py), as a range of a domain that no other
 * range has.
 *
 * A module that was trained and is called without gradients is an evaluation as
 * well. Whether it is trained may show later, so that a moment has the module.
 */
#ifndef MEMSIM_COMMON_TRACE_EPISODE_H
#define MEMSIM_COMMON_TRACE_EPISODE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/trace_read.h"

/* The beginning of the text of such a range; the name follows. */
#define EPISODE_TEXT "memsim episode "

enum episode {
    EPISODE_NONE,
    EPISODE_EVALUATION,
    EPISODE_GENERATION,
    EPISODE_SAVING,
    EPISODE_LOADING,
    EPISODE_COUNT,
};

/* What a moment is a part of. */
struct episode_moment {
    enum episode told;
    uint32_t module; /* called without gradients; 0: none */
};

#define EPISODE_MODULES 32 /* that are trained, at most; of more none counts */

/* Zeroed: at the start of a trace. */
struct episode_tracker {
    struct episode_moment now;
    uint64_t domain;                   /* of the range that is open */
    uint32_t trained[EPISODE_MODULES]; /* outermost modules */
    unsigned trained_count;
};

/* Takes the next record, of any kind. */
void episode_take(struct episode_tracker *t, const struct trace_item *item);

/* What MOMENT was a part of, after the whole trace. */
enum episode episode_of(const struct episode_tracker *t,
                        struct episode_moment moment);

/* "evaluation", "generation", "saving", "loading"; NULL: EPISODE_NONE. */
const char *episode_name(enum episode episode);

#endif
