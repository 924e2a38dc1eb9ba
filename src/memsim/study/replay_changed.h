/* SPDX-License-Identifier: Apache-2.0
 * memsim replay --change layers=N, hidden=OLD:NEW: the recording is changed,
 * then replayed. Times alone: the memory of another job needs a run. */
#ifndef MEMSIM_MEMSIM_STUDY_REPLAY_CHANGED_H
#define MEMSIM_MEMSIM_STUDY_REPLAY_CHANGED_H

#include "memsim/study/replay_profile.h"
#include "memsim/time/job_change.h"

/* Plays P's recording with the CHANGE of its layers or of a size, for which
 * SECOND, "SIZE=PATH", is a recording at another one (NULL: not given). Returns
 * 0, or -1 with ERR set; *R is to be given to replayed_fini in both cases. */
int replay_changed(const struct replay_profile *p,
                   const struct job_change *change, const char *second,
                   struct replayed *r, struct err *err);

#endif
