/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock_files.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/base/lock.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/clock_wait.h"
#include "common/base/bisect.h"

#define MOMENTS 4096
#define APART_NS 5000000 /* at first; twice as far each time they are full */

uint64_t clock_files_next_ns;

/* Under LOCK_RECORD. */
static struct moment {
    uint64_t host_ns, user_ns;
} moments[MOMENTS];
static uint32_t count;
static uint64_t apart_ns = APART_NS;

void clock_files_put(uint64_t host_ns, uint64_t user_ns)
{
    if (count == MOMENTS) {
        for (count = 0; count < MOMENTS / 2; count++)
            moments[count] = moments[2 * count];
        apart_ns *= 2;
    }
    moments[count++] = (struct moment){host_ns, user_ns};
    clock_files_next_ns = host_ns + apart_ns;
}

/* Where the user clock was at HOST_NS, or not long before. */
static uint64_t user_at(uint64_t host_ns)
{
    core_lock(LOCK_RECORD);
    uint32_t after = BISECT(i, count, moments[i].host_ns <= host_ns);
    const struct moment *m = after ? &moments[after - 1] : NULL;
    uint64_t user_ns = m ? m->user_ns + (host_ns - m->host_ns) : host_ns;
    if (m && after < count && user_ns > moments[after].user_ns)
        user_ns = moments[after].user_ns;
    core_unlock(LOCK_RECORD);
    return user_ns;
}

static uint64_t moved(uint64_t unix_ns)
{
    uint64_t distance = clock_distance(CLOCK_REALTIME);
    uint64_t now_ns = clock_host(CLOCK_MONOTONIC);

    if (unix_ns < distance || unix_ns - distance > now_ns || core_locks_held)
        return unix_ns;
    uint64_t user_ns = user_at(unix_ns - distance);
    uint64_t seen_ns = clock_peek(now_ns);
    return distance + (user_ns < seen_ns ? user_ns : seen_ns);
}

static void timespec_move(struct timespec *t)
{
    if (clock_is_time(t))
        *t = clock_timespec(moved(clock_ns_of(t)));
}

void clock_files_stat(struct stat *st)
{
    if (!clock_published())
        return;
    timespec_move(&st->st_atim);
    timespec_move(&st->st_mtim);
    timespec_move(&st->st_ctim);
}

static void statx_move(struct statx_timestamp *t)
{
    struct timespec moved = {(time_t)t->tv_sec, t->tv_nsec};

    timespec_move(&moved);
    t->tv_sec = moved.tv_sec;
    t->tv_nsec = (uint32_t)moved.tv_nsec;
}

void clock_files_statx(struct statx *st)
{
    if (!clock_published())
        return;
    statx_move(&st->stx_atime);
    statx_move(&st->stx_btime);
    statx_move(&st->stx_ctime);
    statx_move(&st->stx_mtime);
}

/* --- of open files -------------------------------------------------------- */

static int stat_open(int file, struct stat *st)
{
    int rc = (int)syscall(SYS_fstat, file, st);

    if (!rc)
        clock_files_stat(st);
    return rc;
}

CORE_API int fstat(int file, struct stat *st)
{
    return stat_open(file, st);
}

CORE_API int fstat64(int file, struct stat64 *st)
{
    return stat_open(file, (struct stat *)st);
}

/* What they are since glibc 2.33. */
CORE_API int __fxstat(int version, int file, struct stat *st);
CORE_API int __fxstat(int version, int file, struct stat *st)
{
    (void)version;
    return stat_open(file, st);
}

CORE_API int __fxstat64(int version, int file, struct stat64 *st);
CORE_API int __fxstat64(int version, int file, struct stat64 *st)
{
    (void)version;
    return stat_open(file, (struct stat *)st);
}
