/* SPDX-License-Identifier: Apache-2.0
 * memsim replay --change stages=P: a recording of one GPU as a pipeline of P
 * ranks, replayed together. Times alone. */
#ifndef MEMSIM_MEMSIM_STUDY_REPLAY_STAGES_H
#define MEMSIM_MEMSIM_STUDY_REPLAY_STAGES_H

#include "memsim/study/replay_profile.h"

struct replay_stages {
    const char *stages;    /* "4", "4x2", "3+5+4" */
    const char *schedule;  /* NULL: by the stages of a rank */
    uint32_t microbatches; /* 0: as recorded */
    uint32_t node_ranks;   /* 0: a node's GPUs, of P's cluster; else all */
};

/* Plays P's recording as STAGES say. Returns 0, or -1 with ERR set; *R is to be
 * given to replayed_fini in both cases. */
int replay_stages(const struct replay_profile *p,
                  const struct replay_stages *stages, struct replayed *r,
                  struct err *err);

#endif
