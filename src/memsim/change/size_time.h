/* SPDX-License-Identifier: Apache-2.0
 * How long the operations of a profile take at another size of the job. Where
 * the models know an operation at all three sizes, it takes as much longer than
 * they say as in the two profiles: between them on a power law, beyond them as
 * in the nearer one. Else its time is on a power law through both. */
#ifndef MEMSIM_MEMSIM_CHANGE_SIZE_TIME_H
#define MEMSIM_MEMSIM_CHANGE_SIZE_TIME_H

#include "memsim/change/side.h"
#include "memsim/change/size_op.h"
#include "memsim/change/sizes.h"

struct size_times {
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

/* Refuses a size beyond both profiles where too little is known. Returns 0, or
 * -1 with ERR set. */
int size_times_check(const struct size_times *t, struct err *err);

#endif
