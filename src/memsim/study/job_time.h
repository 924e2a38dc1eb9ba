/* SPDX-License-Identifier: Apache-2.0
 * Predicted times for a result: the traces of a job's ranks, on one
 * simulator. */
#ifndef MEMSIM_MEMSIM_STUDY_JOB_TIME_H
#define MEMSIM_MEMSIM_STUDY_JOB_TIME_H

#include "memsim/result/result.h"
#include "memsim/study/study_time.h"
#include "memsim/time/simulation_plan.h"

/* A trace of a rank of a result. */
struct study_member {
    struct result_rank *rank;
    uint32_t process;                   /* see result_timeline */
    char *path;                         /* owned */
    const struct simulation_plan *plan; /* NULL: a pass makes it */
};

/* The traces of a job. Zeroed, there are none. */
struct study_members {
    struct study_member *all;
    size_t count, capacity;
};

void study_members_add(struct study_members *m, struct result_rank *rank,
                       uint32_t process, const char *path,
                       const struct simulation_plan *plan);
void study_members_fini(struct study_members *m);

/* Times the ranks of RESULT by their traces, all on one simulator, and writes
 * the files of timelines that T's options name. RESULT gets the timelines that
 * they keep. A rank with several traces has the timing with the most work. A
 * trace that cannot be read becomes a note. Returns 0, or -1 where a file
 * cannot be written. */
int study_time_job(const struct study_time *t, struct result *result,
                   const struct study_members *members, struct err *err);

#endif
