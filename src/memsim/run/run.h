/* SPDX-License-Identifier: Apache-2.0
 * The paths of a run's traces. A run is a directory of `memsim run -o', with
 * a session (rundir.h); a directory of `memsim import', which has none; or one
 * trace. No other file lists traces or builds their paths. */
#ifndef MEMSIM_MEMSIM_RUN_RUN_H
#define MEMSIM_MEMSIM_RUN_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define RUN_NO_PROCESS UINT32_MAX

/* The file in a run's directory with the ranks that each rank represents, one
 * line for each: "RANK MEMBERS", as in "8 8-15". Without it each rank
 * represents itself. */
#define RUN_RANKS "ranks"

/* The file there with the options that its times were predicted with, each as
 * "NAME=VALUE" and a NUL. */
#define RUN_OPTIONS "options"
#define RUN_LIBRARIES "libraries" /* a link, see job.c */

/* The file there with memsim's own command line, each word and a NUL. */
#define RUN_INVOCATION "invocation"

struct run_trace {
    uint32_t process; /* its number; RUN_NO_PROCESS: the user named the file */
    char *path;
};

struct run {
    struct run_trace *traces; /* processes by number; other names by name */
    size_t count, capacity;
    char *directory; /* NULL: it is one trace */
};

/* Lists the traces of PATH: those in the directory, or the file itself. A
 * directory without any is no error. Returns 0, or -1 with ERR set; call
 * run_close in both cases. */
int run_open(struct run *run, const char *path, struct err *err);
void run_close(struct run *run);

/* The trace after BEFORE (NULL: the first); NULL: there is none. */
const struct run_trace *run_next(const struct run *run,
                                 const struct run_trace *before);

/* The same for traces of processes only. */
const struct run_trace *run_next_process(const struct run *run,
                                         const struct run_trace *before);

/* Writes the path of the trace of PROCESS in DIRECTORY to PATH, which is cut at
 * SIZE. */
void run_trace_path(const char *directory, uint32_t process, char *path,
                    size_t size);

/* Whether NAME, a file name or a path, is a trace's. */
bool run_is_trace(const char *name);

/* Whether NAME, without a directory, is a process's trace. Sets *PROCESS. */
bool run_is_process(const char *name, uint32_t *process);

#endif
