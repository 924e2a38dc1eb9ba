/* SPDX-License-Identifier: Apache-2.0
 * Where the traces of a run lie. A run is a directory of `memsim run -o', with
 * a session (rundir.h); a directory of `memsim import', which has none; or one
 * trace. No other file lists traces or builds their paths. */
#ifndef MEMSIM_MEMSIM_RUN_H
#define MEMSIM_MEMSIM_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define RUN_NO_PROCESS UINT32_MAX

/* The file in a run's directory that says which ranks a rank stands for, one
 * line a rank: "RANK MEMBERS", as in "8 8-15". Without it each rank stands for
 * itself. */
#define RUN_RANKS "ranks"

struct run_trace {
    uint32_t process; /* its number; RUN_NO_PROCESS: a name of the user's */
    char *path;
};

struct run {
    struct run_trace *traces; /* processes by number; other names by name */
    size_t count, capacity;
    char *directory; /* NULL: it is one trace */
};

/* Lists the traces of PATH: those in the directory, or the file itself. A
 * directory without any is no error. Returns 0, or -1 with ERR set; run_close
 * in both cases. */
int run_open(struct run *run, const char *path, struct err *err);
void run_close(struct run *run);

/* The trace after BEFORE (NULL: the first); NULL: there is none. */
const struct run_trace *run_next(const struct run *run,
                                 const struct run_trace *before);

/* The same of processes alone. */
const struct run_trace *run_next_process(const struct run *run,
                                         const struct run_trace *before);

/* Writes the path of the trace of PROCESS in DIRECTORY to PATH, which is cut at
 * SIZE. */
void run_trace_path(const char *directory, uint32_t process, char *path,
                    size_t size);

/* Is NAME, of a file or a path, a trace's? */
bool run_is_trace(const char *name);

/* Is NAME, without a directory, that of a process's trace? Sets *PROCESS. */
bool run_is_process(const char *name, uint32_t *process);

#endif
