/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/host_cpus.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/run/clock.h"
#include "capture/core/run/peers.h"

#define TICK_NS (1000000000 / 100) /* USER_HZ is 100 on every x86 and Arm */

/* /proc/stat, first line: "cpu", then ticks of all CPUs. Guests' times, which
 * follow, are in the first two as well. */
enum { USER, NICE, SYSTEM, IDLE, IO_WAIT, IRQ, SOFT_IRQ, STOLEN, STAT_FIELDS };

/* /proc/thread-self/schedstat: times in ns */
enum { ON_CPU, WAITING, SCHED_FIELDS };

#define CHILDREN_MAX 32 /* whose times are read: a look is to stay short */

/* Reads the first COUNT numbers of the file PATH. By system calls: the C
 * library's open() is our own. Returns how many there are. */
static size_t numbers_read(const char *path, uint64_t *numbers, size_t count)
{
    char text[512];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    long n = fd < 0 ? -1 : syscall(SYS_read, fd, text, sizeof text);
    size_t found = 0;

    if (fd >= 0)
        syscall(SYS_close, fd);
    for (long i = 0; found < count; found++) {
        while (i < n && (text[i] < '0' || text[i] > '9'))
            i++;
        if (i >= n)
            break;
        for (numbers[found] = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
            numbers[found] = numbers[found] * 10 + (uint64_t)(text[i] - '0');
    }
    return found;
}

static bool thread_read(uint64_t *numbers)
{
    return numbers_read("/proc/thread-self/schedstat", numbers, SCHED_FIELDS) ==
           SCHED_FIELDS;
}

uint64_t host_cpus_waited(void)
{
    uint64_t thread[SCHED_FIELDS];

    return thread_read(thread) ? thread[WAITING] : 0;
}

static uint64_t time_ns(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000;
}

/* What the processes have had that the calling thread has started, such as a
 * data loader's workers: the job has them on its own machine as well. */
static uint64_t children_ns(void)
{
    uint64_t children[CHILDREN_MAX], ticks = 0;
    size_t count = numbers_read("/proc/thread-self/children", children,
                                CHILDREN_MAX);
    struct rusage ended = {0};

    for (size_t i = 0; i < count; i++)
        ticks += memsim_peer_ticks((uint32_t)children[i]);
    getrusage(RUSAGE_CHILDREN, &ended);
    return ticks * TICK_NS + time_ns(ended.ru_utime) + time_ns(ended.ru_stime);
}

bool host_cpus_read(struct trace_host_cpus *now)
{
    uint64_t thread[SCHED_FIELDS], all[STAT_FIELDS], idle;

    *now = (struct trace_host_cpus){.ran_ns = 0};
    bool known = thread_read(thread);
    if (known) {
        now->ran_ns = thread[ON_CPU];
        now->waited_ns = thread[WAITING];
    }
    if (numbers_read("/proc/stat", all, STAT_FIELDS) < STAT_FIELDS)
        return known;
    idle = all[IDLE] + all[IO_WAIT];
    now->process_ns = clock_host(CLOCK_PROCESS_CPUTIME_ID) + children_ns();
    now->idle_ns = idle * TICK_NS;
    for (int i = 0; i < STAT_FIELDS; i++)
        now->busy_ns += all[i] * TICK_NS;
    now->busy_ns -= now->idle_ns;
    return true;
}
