/* SPDX-License-Identifier: Apache-2.0
 * Starts the command with memsim's libraries, and waits for it. */
#ifndef MEMSIM_MEMSIM_RUN_SPAWN_H
#define MEMSIM_MEMSIM_RUN_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"

/* Writes the directory of the libraries to preload to DIR: OVERRIDE
 * ($MEMSIM_LIBDIR) if it is not NULL, else ../lib/memsim beside the running
 * program's directory. It checks that the directory exists. */
int spawn_library_dir(const char *override, char *dir, size_t size,
                      struct err *err);

/* Whether LD_PRELOAD can name files in DIR: spaces and colons end a name. */
bool spawn_can_preload(const char *dir);

/* The value of LD_PRELOAD: DIR/libmemsim.so, DIR's other libraries in order,
 * then the other libraries of PRELOADED (may be NULL). The caller frees it;
 * NULL with ERR set. */
char *spawn_preload(const char *dir, const char *preloaded, struct err *err);

/* The same for a real GPU: what DIR/real has, behind memsim's own core where an
 * outer run has preloaded it (its GPUs are the real ones then). */
char *spawn_preload_real(const char *dir, const char *preloaded,
                         bool emulates);

/* ENVIRONMENT with what the command needs on a real GPU, and nothing that
 * changes what it does. The caller frees it likewise. */
char **spawn_environment_real(char *const *environment, const char *session,
                              const char *handover, const char *preload,
                              const char *dir);

/* ENVIRONMENT with the variables for the command: SESSION's path, HANDOVER
 * (session_mail.h), PRELOAD (NULL: LD_PRELOAD stays as it is), DIR's Python
 * before any other, DIR for Triton. The caller frees it with
 * spawn_environment_free. */
char **spawn_environment(char *const *environment, const char *session,
                         const char *handover, const char *preload,
                         const char *dir);
void spawn_environment_free(char **environment);

struct rundir;

/* Who watches commands while they run, and may take what they write. */
struct spawn_view {
    int out, err; /* descriptors for a command's output and errors; -1: those
                     of memsim; set by `begin' */
    void (*begin)(void *context, const struct rundir *dir); /* before it runs */
    void (*started)(void *context); /* all signals are blocked */
    void (*ended)(void *context);   /* likewise */
    void *context;
};

/* A command, and how it runs. */
struct spawn {
    char *const *argv, *const *environment;
    int output;            /* descriptor for its output; -1: same as memsim's */
    bool kill_with_memsim; /* the kernel kills it when this process ends */
    const struct spawn_view *view; /* NULL: nobody watches; not with `output' */
    uint32_t limit_s; /* after which it is ended, with what it has started; it
                         reads nothing then; 0: never */
    bool *late;       /* set: it was; may be NULL without a limit */
};

/* Runs SPAWN and waits. A signal to this process alone is forwarded; one to the
 * process group reaches the command once (relay.h). *PID is the command's,
 * *STATUS the status that a shell would report, 128 + N for signal N. Returns
 * 0, or the errno of the failure to start it: negative if no process could be
 * made, positive if the command could not be executed in it. */
int spawn_run(const struct spawn *spawn, pid_t *pid, int *status);

/* The last signal that this process received; 0: none. */
int spawn_signal(void);

/* Did a signal that asks memsim to end, end the last command? */
bool spawn_interrupted(void);

#endif
