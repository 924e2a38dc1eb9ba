/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/relay.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WITNESS_WAIT_MS 100 /* on a busy machine, for the witness to run */
#define GRACE_MS 10000 /* to end by itself, and for memsim to report */
#define SAME_SIGNAL_MS  250 /* timeout(1) sends one to us and one to the group \
                             */

/* What the witness got, by signal. */
struct witness {
    _Atomic uint32_t count[NSIG];
};

static const int passed_signals[] = {SIGHUP,  SIGINT,  SIGQUIT,
                                     SIGTERM, SIGUSR1, SIGUSR2};
static int last_signal;

static bool is_ignored(int signal)
{
    struct sigaction old;

    return sigaction(signal, NULL, &old) || old.sa_handler == SIG_IGN;
}

sigset_t relay_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed_signals / sizeof(int); i++)
        if (!is_ignored(passed_signals[i]))
            sigaddset(&set, passed_signals[i]);
    return set;
}

int relay_signal(void)
{
    return last_signal;
}

void relay_received(int signal)
{
    last_signal = signal;
}

/* Blocks SET, and of the rest what MASK does: Ctrl-Z stops us as ever. */
static void block_only(const sigset_t *set, const sigset_t *mask)
{
    sigset_t both;

    sigorset(&both, set, mask);
    sigprocmask(SIG_SETMASK, &both, NULL);
}

/* Ends with memsim, however that ends. */
static void witness_main(struct witness *w, pid_t parent, const sigset_t *mask)
{
    const sigset_t set = relay_signals();

    block_only(&set, mask);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "memsim-signals");
    while (getppid() == parent) {
        int signal = sigwaitinfo(&set, NULL);

        if (signal > 0)
            atomic_fetch_add(&w->count[signal], 1);
    }
    _exit(0);
}

void relay_start(struct relay *relay, const sigset_t *mask)
{
    pid_t parent = getpid();
    void *shared = mmap(NULL, sizeof(struct witness), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *relay = (struct relay){.witness = -1};
    if (shared == MAP_FAILED)
        return;
    relay->witness = fork();
    if (relay->witness == 0)
        witness_main(shared, parent, mask);
    if (relay->witness > 0)
        relay->seen = shared;
    else
        munmap(shared, sizeof(struct witness));
}

void relay_stop(struct relay *relay)
{
    if (!relay->seen)
        return;
    kill(relay->witness, SIGKILL);
    waitpid(relay->witness, NULL, 0);
    munmap(relay->seen, sizeof(struct witness));
    relay->seen = NULL;
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

struct waiting {
    struct relay *relay;
    pid_t child;
    uint32_t known[NSIG];    /* of the witness's counts */
    uint64_t group_ms[NSIG]; /* when the group got one last; 0: never */
    uint64_t end_ms; /* when the child is ended; 0: never */
};

/* Whether the group got SIGNAL, of which this process has just had one. */
static bool was_for_group(struct waiting *w, int signal)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    const struct witness *seen = w->relay->seen;
    uint64_t start = now_ms();

    if (!seen)
        return false;
    do {
        uint32_t count = atomic_load(&seen->count[signal]);

        if (count != w->known[signal]) {
            w->known[signal] = count;
            w->group_ms[signal] = now_ms();
        }
        if (w->group_ms[signal] &&
            now_ms() - w->group_ms[signal] < SAME_SIGNAL_MS)
            return true;
        nanosleep(&moment, NULL);
    } while (now_ms() - start < WITNESS_WAIT_MS);
    return false;
}

static void pass_on(struct waiting *w, int signal, const siginfo_t *info)
{
    bool is_ours = getpgid(w->child) == getpgrp();
    bool is_terminal = info->si_code > 0; /* for the foreground group */

    last_signal = signal;
    if (is_ours && (is_terminal || was_for_group(w, signal)))
        return;
    kill(is_terminal ? -w->child : w->child, signal);
}

/* Ends the child's group: first so that its processes can end by themselves. */
static void group_end(struct waiting *w)
{
    kill(-w->child, w->relay->late ? SIGKILL : SIGTERM);
    w->relay->late = true;
    w->end_ms = now_ms() + GRACE_MS;
}

/* The next signal of SET; -1: there was none, and the child's time may be
 * over. */
static int signal_wait(struct waiting *w, const sigset_t *set, siginfo_t *info)
{
    uint64_t now = now_ms(), left = w->end_ms > now ? w->end_ms - now : 0;
    const struct timespec rest = {.tv_sec = (time_t)(left / 1000),
                                  .tv_nsec = (long)(left % 1000) * 1000000};

    if (!w->end_ms)
        return sigwaitinfo(set, info);
    int signal = sigtimedwait(set, info, &rest);
    if (signal < 0 && errno == EAGAIN)
        group_end(w);
    return signal;
}

/* What came too late for the command is not meant for memsim's report. */
static void drop_pending(void)
{
    const struct timespec at_once = {0};
    const sigset_t set = relay_signals();
    int signal;

    while ((signal = sigtimedwait(&set, NULL, &at_once)) > 0)
        last_signal = signal;
}

int relay_wait(struct relay *relay, pid_t child, uint32_t limit_s,
               const sigset_t *mask)
{
    struct waiting w = {
        .relay = relay,
        .child = child,
        .end_ms = limit_s ? now_ms() + (uint64_t)limit_s * 1000 : 0};
    sigset_t set = relay_signals();
    siginfo_t info;
    int status;

    sigaddset(&set, SIGCHLD);
    block_only(&set, mask);
    for (;;) {
        pid_t pid = waitpid(child, &status, WNOHANG);

        if (pid == child) {
            if (relay->late)
                kill(-child, SIGKILL); /* what it has started */
            drop_pending();
            return status;
        }
        if (pid < 0 && errno == EINTR)
            continue; /* its SIGCHLD may be gone already */
        if (pid < 0)
            return -1;
        int signal = signal_wait(&w, &set, &info);
        if (signal > 0 && signal != SIGCHLD)
            pass_on(&w, signal, &info);
    }
}
