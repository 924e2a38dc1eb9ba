/* SPDX-License-Identifier: Apache-2.0
 * The status of a process that has ended, as a shell reports it. */
#ifndef MEMSIM_MEMSIM_RUN_ENDED_H
#define MEMSIM_MEMSIM_RUN_ENDED_H

#include <sys/wait.h>

/* Of one that SIGNAL has ended. */
static inline int ended_by(int signal)
{
    return 128 + signal;
}

/* STATUS is that of waitpid(2). */
static inline int ended_status(int status)
{
    return WIFSIGNALED(status) ? ended_by(WTERMSIG(status))
                               : WEXITSTATUS(status);
}

#endif
