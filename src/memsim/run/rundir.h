/* SPDX-License-Identifier: Apache-2.0
 * A run's directory: the session that its processes share, their traces, the
 * command line. */
#ifndef MEMSIM_MEMSIM_RUNDIR_H
#define MEMSIM_MEMSIM_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/trace/session.h"

struct rundir {
    char path[sizeof((struct session *)0)->directory]; /* absolute */
    bool temporary; /* a private one, nobody asked for its name */
    bool created;   /* it was not there before the run */
    int lock;       /* fd of the session file, locked while the run lives */
    struct session *session;
};

/* Makes a run's directory: PATH, created where it is not there and emptied of
 * an earlier run's files where it holds one; or, where PATH is NULL, a private
 * one under TEMPORARY (NULL: /tmp). The session in it is mapped, zeroed but
 * for its magic, sizes and directory, and all its disk space is taken. COMMAND
 * is written beside it. Returns 0, or -1 with nothing left behind. */
int rundir_create(struct rundir *dir, const char *path, const char *temporary,
                  char *const *command, struct err *err);

/* Maps the session of the run in PATH, finished or not, read-only. */
int rundir_open(struct rundir *dir, const char *path, struct err *err);

/* Reads the command of an opened run: a NULL-terminated array in one piece of
 * heap, which the caller frees. Returns NULL with ERR set. */
char **rundir_command(const struct rundir *dir, struct err *err);

/* True where SESSION_FILE, a path, belongs to a run that still goes on. */
bool rundir_is_live(const char *session_file);

/* Writes the path of process SLOT's trace to PATH. */
void rundir_trace(const struct rundir *dir, unsigned slot, char *path,
                  size_t size);

/* Unmaps the session and lets go of the directory. */
void rundir_close(struct rundir *dir);

/* The same, and removes the run's files, and the directory where the run
 * created it and nothing else is in it. */
void rundir_remove(struct rundir *dir);

#endif
