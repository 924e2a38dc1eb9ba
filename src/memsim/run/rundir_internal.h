/* SPDX-License-Identifier: Apache-2.0
 * What the files of rundir.h share. */
#ifndef MEMSIM_MEMSIM_RUN_RUNDIR_INTERNAL_H
#define MEMSIM_MEMSIM_RUN_RUNDIR_INTERNAL_H

#include "memsim/run/rundir.h"

/* Writes the path of NAME in DIR to PATH. Returns 0, or -1 where it is cut. */
int rundir_file(const char *dir, const char *name, char *path, size_t size);

/* A copy of the session in FD, a file called NAME, on the heap: a mapping of a
 * file that somebody cuts short would end this program. Processes that were
 * killed have the state SESSION_KILLED. NULL with ERR set. */
struct session *rundir_session_read(int fd, const char *name, struct err *err);

#endif
