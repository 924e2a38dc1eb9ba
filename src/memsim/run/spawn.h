/* SPDX-License-Identifier: Apache-2.0
 * Starting the command under observation, and waiting for it. */
#ifndef MEMSIM_MEMSIM_SPAWN_H
#define MEMSIM_MEMSIM_SPAWN_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

/* Writes the directory of the libraries to preload to DIR: OVERRIDE
 * ($MEMSIM_LIBDIR) where it is not NULL, else ../lib/memsim beside the running
 * program's directory. It is checked: there, and without a character that
 * LD_PRELOAD cannot carry. */
int spawn_library_dir(const char *override, char *dir, size_t size,
                      struct err *err);

/* The value of LD_PRELOAD: DIR/libmemsim.so, DIR's other libraries in order,
 * then what PRELOADED (may be NULL) names from elsewhere. The caller frees it;
 * NULL with ERR set. */
char *spawn_preload(const char *dir, const char *preloaded, struct err *err);

/* ENVIRONMENT with what the command needs: SESSION's path, HANDOVER
 * (session_mail.h), PRELOAD (NULL: LD_PRELOAD stays as it is), DIR's Python
 * before any other, DIR for Triton. The caller frees it with
 * spawn_environment_free. */
char **spawn_environment(char *const *environment, const char *session,
                         const char *handover, const char *preload,
                         const char *dir);
void spawn_environment_free(char **environment);

/* A command, and how it runs. */
struct spawn {
    char *const *argv, *const *environment;
    int output;            /* where what it prints goes; -1: where ours goes */
    bool kill_with_memsim; /* the kernel kills it when this process ends */
};

/* Runs SPAWN and waits. A signal that comes to this process alone is passed on;
 * one for the process group reaches the command once (relay.h). *STATUS gets
 * what a shell would say, 128 + N for signal N. Returns 0, or the errno of the
 * failure to start it: negative where no process could be made, positive where
 * the command could not be executed in it. */
int spawn_run(const struct spawn *spawn, int *status);

/* The last signal that came to this process; 0: none. */
int spawn_signal(void);

#endif
