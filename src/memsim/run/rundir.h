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
    int lock;       /* fd of the lock file while this process owns the run */
    int file;       /* fd of the session file, likewise */
    bool mapped;    /* the session is the file; else a copy on the heap */
    struct session *session;
};

/* Makes a run's directory and owns it, until it is closed: PATH, which must be
 * new, empty, or, with FORCE, hold an earlier run that is over; that run's
 * files are removed, and no others. Where PATH is NULL, a private directory
 * under TEMPORARY (NULL: /tmp). The session in it is mapped, zeroed but for
 * its magic, sizes and directory, and all its disk space is taken. COMMAND is
 * written beside it. Returns 0, or -1 with nothing left behind. */
int rundir_create(struct rundir *dir, const char *path, const char *temporary,
                  bool force, char *const *command, struct err *err);

/* Reads the session of an own run whose command has ended, in place of the
 * mapping: the command may have damaged the file. Returns 0 or -1. */
int rundir_collect(struct rundir *dir, struct err *err);

/* The processes of a collected run that are alive, after a moment in which
 * workers may end with their parent. */
uint32_t rundir_background(const struct rundir *dir);

/* Writes what the session says of the end (end_ns, exit_status, background)
 * to the file. Returns 0 or -1. */
int rundir_finish(const struct rundir *dir, struct err *err);

/* Reads the session of the run in PATH, finished or not. */
int rundir_open(struct rundir *dir, const char *path, struct err *err);

/* Reads the command of an opened run: a NULL-terminated array in one piece of
 * heap, which the caller frees. Returns NULL with ERR set. */
char **rundir_command(const struct rundir *dir, struct err *err);

/* True where SESSION_FILE, a path, belongs to a run that still goes on. */
bool rundir_is_live(const char *session_file);

/* Lets go of the session and of the directory. */
void rundir_close(struct rundir *dir);

/* The same, and removes the run's files, and the directory where the run
 * created it and nothing else is in it. */
void rundir_remove(struct rundir *dir);

#endif
