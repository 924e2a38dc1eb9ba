/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/peers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/run/process.h"
#include "common/base/clamp.h"
#include "common/base/text_begins.h"

#define ANCESTORS_MAX 64

/* Of /proc/PID/stat (proc(5)). */
struct stat_line {
    char state;
    uint32_t parent;
    uint64_t busy_ticks;
};

static bool stat_read(uint32_t pid, struct stat_line *stat)
{
    char path[32], text[512];
    unsigned long user, system;
    unsigned parent;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *after = strrchr(text, ')'); /* the name may hold anything */
    if (!after || sscanf(after + 1,
                         " %c %u %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                         &stat->state, &parent, &user, &system) != 4)
        return false;
    stat->parent = parent;
    stat->busy_ticks = user + system;
    return stat->state != 'Z' && stat->state != 'X';
}

bool memsim_peer_lives(uint32_t pid)
{
    struct stat_line stat;

    return stat_read(pid, &stat);
}

uint64_t memsim_peer_ticks(uint32_t pid)
{
    struct stat_line stat;

    return stat_read(pid, &stat) ? stat.busy_ticks : 0;
}

static uint32_t turn_of(const struct session *s, uint32_t rank)
{
    return session_turn(s->ranks, s->rank_count, s->local_world_size, rank);
}

bool memsim_peer_is_real(uint32_t rank)
{
    const struct session *s = memsim_session();

    if (!s || !s->world_size)
        return true;
    if (session_card_of(s, rank) == UINT32_MAX)
        return false;
    return !s->real || turn_of(s, rank) == turn_of(s, process_rank());
}

/* --- the list ------------------------------------------------------------- */

/* Ranks are Python's, or have a launcher that numbers them. */
static bool may_be_rank(void)
{
    return text_begins(program_invocation_short_name, "python") ||
           text_begins(program_invocation_short_name, "pt_main") ||
           getenv("RANK") || getenv("OMPI_COMM_WORLD_RANK") ||
           getenv("SLURM_PROCID");
}

void peers_enter(void)
{
    struct session *s = memsim_session();
    uint32_t pid = (uint32_t)getpid();

    if (!s || !may_be_rank())
        return;
    for (int i = 0; i < SESSION_LOADED; i++)
        if (s->loaded[i] == pid)
            return;
    for (int i = 0; i < SESSION_LOADED; i++) {
        uint32_t old = s->loaded[i];

        if (old && memsim_peer_lives(old))
            continue;
        if (atomic_compare_exchange_strong(&s->loaded[i], &old, pid))
            return;
    }
}

void peers_leave(void)
{
    struct session *s = memsim_session();
    uint32_t pid = (uint32_t)getpid();

    for (int i = 0; s && i < SESSION_LOADED; i++)
        if (s->loaded[i] == pid)
            s->loaded[i] = 0;
}

/* --- the others ----------------------------------------------------------- */

/* Whether PID descends from, or is, ANCESTOR. */
static bool process_descends(uint32_t pid, uint32_t ancestor)
{
    struct stat_line stat;

    for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
        if (pid == ancestor)
            return true;
        if (!stat_read(pid, &stat))
            return false;
        pid = stat.parent;
    }
    return false;
}

static bool uses_gpu(const struct session *s, uint32_t pid)
{
    uint32_t count = memsim_process_count();

    for (uint32_t i = 0; i < count; i++)
        if (s->processes[i].pid == pid &&
            atomic_load(&s->processes[i].state) == SESSION_RUNNING)
            return true;
    return false;
}

/* The processor time of the one at place I, in ticks; false where it is no
 * peer. */
static bool peer_at(struct session *s, int i, uint64_t *ticks)
{
    uint32_t pid = s->loaded[i], own = (uint32_t)getpid();
    struct stat_line stat;

    if (!pid || pid == own || !stat_read(pid, &stat))
        return false;
    *ticks = stat.busy_ticks;
    return uses_gpu(s, pid) || (!process_descends(process_starter(), pid) &&
                                !process_descends(pid, own));
}

uint32_t memsim_peers_count(void)
{
    struct session *s = memsim_session();
    uint32_t count = 0;
    uint64_t ticks;

    for (int i = 0; s && i < SESSION_LOADED; i++)
        count += peer_at(s, i, &ticks);
    return count;
}

_Static_assert(sizeof(struct peers_note) == 8192, "world.py has room for it");

void memsim_peers_note(struct peers_note *note)
{
    struct session *s = memsim_session();

    for (int i = 0; s && i < SESSION_LOADED; i++)
        if (!peer_at(s, i, &note->ticks[i]))
            note->ticks[i] = 0;
}

uint64_t memsim_peers_busiest_ms(const struct peers_note *note)
{
    struct session *s = memsim_session();
    uint64_t most = 0, ticks;

    for (int i = 0; s && i < SESSION_LOADED; i++)
        if (peer_at(s, i, &ticks))
            most = most_u64(most, minus_or_zero(ticks, note->ticks[i]));
    return most * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t memsim_peers_busy_ms(void)
{
    struct session *s = memsim_session();
    uint64_t sum = 0, ticks;

    for (int i = 0; s && i < SESSION_LOADED; i++)
        if (peer_at(s, i, &ticks))
            sum += ticks;
    return sum * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}
