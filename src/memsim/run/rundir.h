/* SPDX-License-Identifier: Apache-2.0
 * A run's directory: the session that its processes share, their traces, the
 * command line. */
#ifndef MEMSIM_MEMSIM_RUN_RUNDIR_H
#define MEMSIM_MEMSIM_RUN_RUNDIR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/trace/session.h"

#define RUNDIR_PRIVATE "memsim-" /* begins the name of a private directory */

struct rundir {
    char path[sizeof((struct session *)0)->directory]; /* absolute */
    bool temporary; /* a private directory that the user did not name */
    bool created;   /* it did not exist before the run */
    int lock;       /* fd of the lock file while this process owns the run */
    int file;       /* fd of the session file, likewise */
    bool mapped;    /* the session is the file; else a copy on the heap */
    struct session *session;
    bool late; /* the run was ended after job.limit_s */
};

/* Makes a run's directory and owns it until it is closed. PATH must be new or
 * empty or, with FORCE, have an earlier run that has ended; only that run's
 * files are removed. If PATH is NULL, it is a private directory under TEMPORARY
 * (NULL: /tmp). The session in it is mapped, zeroed except for its magic, sizes
 * and directory, and all its disk space is allocated. COMMAND is written beside
 * it. Returns 0, or -1 with no files left. */
int rundir_create(struct rundir *dir, const char *path, const char *temporary,
                  bool force, char *const *command, struct err *err);

/* Reads the session of this process's run after its command has ended, instead
 * of the mapping: the command may have damaged the file. Returns 0 or -1. */
int rundir_collect(struct rundir *dir, struct err *err);

/* The number of live processes of a collected run, after a short wait in which
 * workers may end with their parent. */
uint32_t rundir_background(const struct rundir *dir);

/* Writes the session's end_ns, exit_status and background to the file. Returns
 * 0 or -1. */
int rundir_finish(const struct rundir *dir, struct err *err);

/* Reads the session of the run in PATH, finished or not. */
int rundir_open(struct rundir *dir, const char *path, struct err *err);

/* Writes WORDS, NULL-terminated, to the new file NAME of the directory. Returns
 * 0 or -1. */
int rundir_write_words(const struct rundir *dir, const char *name,
                       char *const *words, struct err *err);

/* Reads them from the file NAME in DIRECTORY into *WORDS, one heap block that
 * the caller frees; NULL where there is no such file. Returns 0 or -1. */
int rundir_read_words(const char *directory, const char *name, char ***words,
                      struct err *err);

/* Reads the command of an opened run: a NULL-terminated array in one heap
 * block, which the caller frees. Returns NULL with ERR set. */
char **rundir_command(const struct rundir *dir, struct err *err);

/* The directory that the file PATH is in, as a heap text. */
char *rundir_of(const char *path);

/* Sets GPU to that of the run in whose directory the file PATH is, if that run
 * used a GPU called NAME: it need not be the catalogue's. Returns whether it
 * did. */
bool rundir_gpu(const char *path, const char *name, struct gpu *gpu);

/* True if SESSION_FILE, a path, belongs to a run that has not ended. */
bool rundir_is_live(const char *session_file);

/* Closes the session and the directory. */
void rundir_close(struct rundir *dir);

/* The same, and removes the run's files; also the directory, if the run created
 * it and nothing else is in it. */
void rundir_remove(struct rundir *dir);

#endif
