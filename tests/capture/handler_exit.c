/* SPDX-License-Identifier: Apache-2.0
 * A signal's handler that ends the process, wherever that is in a call. */
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define PROCESSES 40
#define LIMIT_S   30

static void on_alarm(int signal)
{
    (void)signal;
    _exit(0);
}

/* Calls until a signal comes, after AFTER_US of them. */
static void calls_until(int after_us)
{
    const struct itimerval timer = {.it_value.tv_usec = after_us};
    char *p;

    signal(SIGALRM, on_alarm);
    CHECK(!cudaMalloc((void **)&p, 4096));
    setitimer(ITIMER_REAL, &timer, NULL);
    for (;;) {
        void *more;
        cudaMemsetAsync(p, 0, 4096, NULL);
        cudaMallocHost(&more, 1 << 20);
        cudaFreeHost(more);
    }
}

/* The status of PID, or -1 where it has not ended at DEADLINE. */
static int status_by(pid_t pid, time_t deadline)
{
    const struct timespec moment = {.tv_nsec = 5000000};
    int status;

    while (!waitpid(pid, &status, WNOHANG)) {
        if (time(NULL) > deadline) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
        nanosleep(&moment, NULL);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

TEST(a_handler_ends_the_process_in_any_call)
{
    pid_t pids[PROCESSES];
    time_t deadline = time(NULL) + LIMIT_S;

    for (int i = 0; i < PROCESSES; i++)
        if (!(pids[i] = fork()))
            calls_until(2000 + 317 * i);
    for (int i = 0; i < PROCESSES; i++)
        CHECK(status_by(pids[i], deadline) == 0);
}
