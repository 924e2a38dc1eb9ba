/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/clock_files.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/base/lock.h"
#include "capture/core/run/clock.h"
#include "common/base/bisect.h"

#define MOMENTS  65536
#define APART_NS 1000000 /* at first; twice as far each time they are full */

/* The kernel takes the time of a file from its last tick, and ticks late on a
 * busy machine. */
#define TICK_NS 12000000

/* Under LOCK_RECORD: APART_NS apart. */
static struct clock_moment moments[MOMENTS];
static uint32_t count;
static uint64_t apart_ns = APART_NS;

struct clock_moment clock_files_latest;
uint64_t clock_files_next_ns;

void clock_files_keep(void)
{
    if (count == MOMENTS) {
        for (count = 0; count < MOMENTS / 2; count++)
            moments[count] = moments[2 * count];
        apart_ns *= 2;
    }
    moments[count++] = clock_files_latest;
    clock_files_next_ns = clock_files_latest.host_ns + apart_ns;
}

/* Where the user clock was at HOST_NS, which is not before the first moment, or
 * not long before. */
static uint64_t user_at(uint64_t host_ns)
{
    core_lock(LOCK_RECORD);
    uint32_t after = BISECT(i, count, moments[i].host_ns <= host_ns);
    struct clock_moment m = moments[after - 1], next = clock_files_latest;
    if (host_ns >= next.host_ns)
        m = next;
    else if (after < count)
        next = moments[after];
    uint64_t user_ns = m.user_ns + (host_ns - m.host_ns);
    if (next.host_ns > host_ns && user_ns > next.user_ns)
        user_ns = next.user_ns;
    core_unlock(LOCK_RECORD);
    return user_ns;
}

static uint64_t move_time(uint64_t unix_ns)
{
    uint64_t distance = clock_distance(CLOCK_REALTIME);
    uint64_t now_ns = clock_host(CLOCK_MONOTONIC);

    if (unix_ns < distance || unix_ns - distance > now_ns || core_locks_held)
        return unix_ns;
    uint64_t host_ns = unix_ns - distance;
    if (!count || host_ns < moments[0].host_ns)
        return unix_ns;
    host_ns = host_ns + TICK_NS < now_ns ? host_ns + TICK_NS : now_ns;
    uint64_t seen_ns = clock_user_peek(), user_ns = user_at(host_ns);
    user_ns = user_ns < seen_ns ? user_ns : seen_ns;
    clock_told(user_ns); /* no clock may go back behind it */
    return distance + user_ns;
}

static void timespec_move(struct timespec *t)
{
    if (clock_is_time(t))
        *t = clock_timespec(move_time(clock_ns_of(t)));
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
