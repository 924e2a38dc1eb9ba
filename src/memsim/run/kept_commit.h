/* SPDX-License-Identifier: Apache-2.0
 * The copies' tree put in the place of what it stands in for. */
#ifndef MEMSIM_MEMSIM_RUN_KEPT_COMMIT_H
#define MEMSIM_MEMSIM_RUN_KEPT_COMMIT_H

#include "memsim/run/rundir.h"

/* Does to the root PATH what the run of DIR did to its copy. */
void kept_commit(const struct rundir *dir, const char *path);

#endif
