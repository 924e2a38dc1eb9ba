/* SPDX-License-Identifier: Apache-2.0
 * The user's files before and after a run, which has not changed them
 * (capture/core/files/scratch.h). */
#ifndef MEMSIM_MEMSIM_RUN_KEPT_FILES_H
#define MEMSIM_MEMSIM_RUN_KEPT_FILES_H

#include "memsim/run/rundir.h"

/* Makes what the run's processes share, all of it allocated. Returns 0 or -1
 * with ERR set. */
int kept_files_begin(const struct rundir *dir, struct err *err);

/* After the command, the session collected: takes the checkpoints away that the
 * run made, with values that nobody computed, and notes them in the session.
 * Where no GPU was used, all is as computed: puts the run's changes of kept
 * files in place. */
void kept_files_end(const struct rundir *dir);

#endif
