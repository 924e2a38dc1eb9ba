/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/temporary.h"
#include "common/base/xmalloc.h"
#include "memsim/run/ended.h"
#include "memsim/run/relay.h"

struct worker {
    pid_t pid; /* 0: none */
    size_t at;
};

struct pool {
    const struct workers *w;
    struct worker *of; /* w->most */
    size_t running;
    sigset_t before; /* what this process blocked */
    bool stopped;
    int error;
};

/* The PLACEth of COUNT parts of this process's CPUs; with fewer CPUs than parts
 * they are shared. */
static void cpus_take(size_t place, size_t count)
{
    cpu_set_t all, mine;
    size_t seen = 0;

    if (sched_getaffinity(0, sizeof all, &all))
        return;
    size_t cpus = (size_t)CPU_COUNT(&all);
    CPU_ZERO(&mine);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all)) {
            if ((cpus < count ? seen + (place / cpus) * cpus
                              : seen * count / cpus) == place)
                CPU_SET(i, &mine);
            seen++;
        }
    sched_setaffinity(0, sizeof mine, &mine);
}

/* A group of its own: what is sent to this process's group reaches the work
 * once, passed on. It must not read the terminal. */
static _Noreturn void work_alone(const struct pool *p, size_t place,
                                 pid_t parent)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

    temporary_own();
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(ended_by(SIGTERM));
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    cpus_take(place, p->w->most);
    sigprocmask(SIG_SETMASK, &p->before, NULL);
    int status = p->w->work(p->w->context, p->of[place].at);
    fflush(NULL);
    _exit(status);
}

static void worker_begin(struct pool *p, size_t at)
{
    size_t place = 0;
    pid_t parent = getpid();

    while (p->of[place].pid)
        place++;
    p->of[place].at = at;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        work_alone(p, place, parent);
    if (pid < 0) {
        p->error = errno;
        p->stopped = true;
        return;
    }
    p->of[place].pid = pid;
    p->running++;
}

static void workers_tell(const struct pool *p, int signal)
{
    for (size_t i = 0; i < p->w->most; i++)
        if (p->of[i].pid)
            kill(p->of[i].pid, signal);
}

static void workers_reap(struct pool *p)
{
    for (size_t i = 0; i < p->w->most; i++) {
        int status;
        if (!p->of[i].pid || waitpid(p->of[i].pid, &status, WNOHANG) <= 0)
            continue;
        p->of[i].pid = 0;
        p->running--;
        if (p->w->ended(p->w->context, p->of[i].at, ended_status(status)))
            p->stopped = true;
    }
}

/* Until a work ends, or a signal comes. */
static void workers_wait(struct pool *p, const sigset_t *set)
{
    int signal = sigwaitinfo(set, NULL);

    if (signal > 0 && signal != SIGCHLD) {
        relay_received(signal);
        workers_tell(p, signal);
        p->stopped = true;
    }
    workers_reap(p);
}

int workers_run(const struct workers *w, const size_t *at, size_t count)
{
    struct pool p = {.w = w, .of = xcalloc(w->most, sizeof *p.of)};
    sigset_t set = relay_signals();

    sigaddset(&set, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* where it is ignored, there is no status */
    sigprocmask(SIG_BLOCK, &set, &p.before);
    for (size_t next = 0; p.running || (next < count && !p.stopped);) {
        if (next < count && !p.stopped && p.running < w->most)
            worker_begin(&p, at[next++]);
        else
            workers_wait(&p, &set);
    }
    sigprocmask(SIG_SETMASK, &p.before, NULL);
    free(p.of);
    return p.error;
}
