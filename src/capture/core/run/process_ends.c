/* SPDX-License-Identifier: Apache-2.0
 * Ends of processes that on_exit(3) does not see: those of their own, and those
 * that another process of the run makes on purpose. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/process.h"

/* --- its own -------------------------------------------------------------- */

/* os._exit() and multiprocessing's workers end here, past every destructor. */
CORE_API __attribute__((noreturn)) void _exit(int status)
{
    process_end((uint32_t)status & 0xff);
    for (;;)
        syscall(SYS_exit_group, status);
}

CORE_API __attribute__((noreturn)) void _Exit(int status)
{
    _exit(status);
}

/* The C library goes on to its own _exit(). */
CORE_API __attribute__((noreturn)) void quick_exit(int status)
{
    process_end((uint32_t)status & 0xff);
    REAL(quick_exit)(status);
    __builtin_unreachable();
}

/* --- others --------------------------------------------------------------- */

static bool ends_a_process(int signal)
{
    return signal == SIGTERM || signal == SIGKILL || signal == SIGINT ||
           signal == SIGQUIT || signal == SIGHUP;
}

/* Whether kill(2) of TARGET reaches PID, which is not this process. */
static bool is_reached(pid_t target, pid_t pid)
{
    if (pid == getpid())
        return false;
    if (target > 0)
        return pid == target;
    return getpgid(pid) == (target ? -target : getpgrp());
}

/* terminate() and kill() of multiprocessing and subprocess, timeout(1) and a
 * shell's kill come here: the slots of those that are reached say so, and the
 * verdict does not count them as failed. Safe in a handler of a signal. */
static void stops_note(pid_t target, int signal)
{
    struct session *session = memsim_session();
    int saved = errno;

    if (!session || !ends_a_process(signal) || target == -1)
        return;
    for (uint32_t i = 0; i < memsim_process_count(); i++) {
        struct session_process *p = &session->processes[i];

        if (atomic_load(&p->state) == SESSION_RUNNING &&
            is_reached(target, (pid_t)p->pid))
            atomic_store(&p->stopped_by, (uint32_t)signal);
    }
    errno = saved;
}

CORE_API int kill(pid_t pid, int signal)
{
    stops_note(pid, signal);
    return (int)syscall(SYS_kill, pid, signal);
}

CORE_API int killpg(pid_t group, int signal)
{
    if (group < 0) {
        errno = EINVAL;
        return -1;
    }
    return kill(-group, signal);
}
