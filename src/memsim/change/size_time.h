/* SPDX-License-Identifier: Apache-2.0
 * How long the operations of a profile take at another size of the job. Where
 * the models know an operation at all three sizes, it takes as much longer than
 * they say as in the two profiles: between them on a power law, beyond them as
 * in the nearer one. Else its time is on a power law through both; beyond them
 * the same kernel elsewhere decides, where the models know that. */
#ifndef MEMSIM_MEMSIM_CHANGE_SIZE_TIME_H
#define MEMSIM_MEMSIM_CHANGE_SIZE_TIME_H

#include "common/base/map.h"
#include "memsim/change/side.h"
#include "memsim/change/size_op.h"
#include "memsim/change/sizes.h"

/* Operations beyond both profiles of which they do not say what is computed, as
 * of those that were launched before the profile began; and what the same
 * kernels take elsewhere in it. Zeroed: none. */
struct size_doubts {
    struct size_doubt {
        size_t op;
        uint64_t first_ns, wanted_ns;
    } *all;
    size_t count, capacity;
    struct size_known {
        uint64_t first_ns, wanted_ns; /* of all of them */
    } *known;
    size_t known_count, known_capacity;
    struct map numbers; /* of KNOWN, + 1, by the operation's mark */
};

struct size_times {
    struct size_doubts *doubts;
    const struct sizes_change *change;
    const struct size_points *points;
    struct side *a, *b; /* the first profile, which is changed; the second */
    struct sizes_report *report;
};

/* Sets the times of the COUNTS[0] operations from I on, which are the COUNTS[1]
 * from J on in the second profile: a list of tensors; or one and one, MADE is
 * the changed one. Recordings that are no profiles stay. */
void size_times_change(const struct size_times *t, size_t i, size_t j,
                       const size_t counts[2], const struct size_op *made);

/* Does the profile of SIDE not say which call launched operation OP? */
bool size_time_is_uncalled(const struct side *side, size_t op);

/* Gives operations in doubt the times of the same kernel elsewhere, by its name
 * and grid. Then refuses a size beyond both profiles where too little is known.
 * Returns 0, or -1 with ERR set. */
int size_times_settle(const struct size_times *t, struct err *err);

void size_doubts_fini(struct size_doubts *d);

#endif
