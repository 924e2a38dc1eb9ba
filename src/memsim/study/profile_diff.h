/* SPDX-License-Identifier: Apache-2.0
 * A predicted step against a profile of the same script. */
#ifndef MEMSIM_MEMSIM_STUDY_PROFILE_DIFF_H
#define MEMSIM_MEMSIM_STUDY_PROFILE_DIFF_H

#include <stdbool.h>

#include "memsim/report/text/time_diff.h"
#include "memsim/study/input_run.h"
#include "memsim/study/replay_profile.h"
#include "memsim/study/scratch.h"

struct profile_side {
    const char *name; /* of its file or directory; borrowed */
    bool is_profile;
    bool simulated;         /* a profile that memsim made */
    struct input_run input; /* of a run */
    struct run run;         /* of a profile */
    struct scratch scratch; /* that it was imported into */
    struct replayed replayed; /* likewise */
};

struct profile_diff {
    struct profile_side before, after;
    const struct timing *a, *b; /* of before, of after */
    struct time_diff time;
};

/* Is PATH a profiler's trace, or a directory of `memsim import'? */
bool diff_is_profile(const char *path);

/* Compares the steps of ESTIMATE, a run or a profile, and of the profile
 * TRACE. Returns 0 with *D to be given to profile_diff_close, or -1 with ERR
 * set. *D must not move. */
int profile_diff_open(struct profile_diff *d, const char *estimate,
                      const char *trace, struct err *err);
void profile_diff_close(struct profile_diff *d);

#endif
