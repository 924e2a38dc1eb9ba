/* SPDX-License-Identifier: Apache-2.0
 * A recording replayed on many GPUs, as rows of one table. */
#ifndef MEMSIM_MEMSIM_STUDY_REPLAY_MANY_H
#define MEMSIM_MEMSIM_STUDY_REPLAY_MANY_H

#include "memsim/report/text/gpu_table.h"
#include "memsim/run/run.h"
#include "memsim/study/replay_study.h"

struct replay_many {
    const struct replay_question *ask; /* its gpu names several */
    const struct run *run;
    const char *price; /* of --price; NULL: none */
    double budget;     /* 0: none */
    uint64_t steps;    /* of the job; 0: not known */
    /* Before the replay on the GPU that is AT of COUNT; NULL: nothing. */
    void (*begins)(size_t at, size_t count, const char *gpu);
};

/* Does --gpu name several: "all", or "l4,a10"? NULL: no. */
bool replay_many_asked(const char *gpu);

/* Replays Q's run on each GPU. Returns 0 with *TABLE in order, and memsim's
 * exit status in it, or -1 with ERR set; *TABLE is to be given to
 * gpu_table_fini in both cases. */
int replay_many(const struct replay_many *q, struct gpu_table *table,
                struct err *err);

#endif
