/* SPDX-License-Identifier: Apache-2.0
 * memsim replay PROFILE --dp N. */
#ifndef MEMSIM_MEMSIM_STUDY_REPLAY_REPLICAS_H
#define MEMSIM_MEMSIM_STUDY_REPLAY_REPLICAS_H

#include "memsim/change/replicas.h"
#include "memsim/study/replay_profile.h"

/* Says in a result what WHAT, a struct replicas_report, has. */
void replay_replicas_note(struct result *result, const void *what);

/* Puts what DDP would do into the trace of the only rank in FOLDER, made of
 * P's. Returns 0, or -1 with ERR set; nothing is put in where the trace has
 * collectives that may average (see REPORT). */
int replay_replicas_put(const struct replay_profile *p, const char *folder,
                        struct replicas_report *report, struct err *err);

/* Replays P with gradients averaged over its data_parallel ranks: a profile
 * with collectives has them wider, one of a single GPU gets what DDP would do.
 * Returns 0, or -1 with ERR set; *R is to be given to replayed_fini in both
 * cases. */
int replay_replicas(const struct replay_profile *p, struct replayed *r,
                    struct err *err);

#endif
