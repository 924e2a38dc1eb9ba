/* SPDX-License-Identifier: Apache-2.0
 *
 *   a node = for each of its ranks, what its processes take at their peaks
 *            (the rank that was run in its place, where it was not)
 *          + processes of no rank (torchrun)
 *          + /dev/shm, beyond what was there before
 *
 * The peaks need not be at the same time: a sum of them is an upper bound. */
#include "memsim/result/result_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clamp.h"
#include "common/base/status.h"
#include "common/base/xmalloc.h"

#define GENERATIONS 8 /* of forks below a rank */

static uint64_t value_load(const session_u64 *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* --- processes ------------------------------------------------------------ */

static uint32_t hosts_count(const struct session *s)
{
    uint32_t count = atomic_load(&s->host_count);

    return count < SESSION_HOSTS ? count : SESSION_HOSTS;
}

static uint32_t parent_of(const struct session *s, uint32_t pid)
{
    for (uint32_t i = 0; i < hosts_count(s); i++)
        if (s->hosts[i].pid == pid)
            return s->hosts[i].parent;
    return 0;
}

/* The process that used a GPU and is PID, or above it; NULL: none. */
static const struct session_process *rank_process(const struct session *s,
                                                  uint32_t pid)
{
    for (int i = 0; i < GENERATIONS && pid; i++) {
        for (uint32_t slot = 0; slot < session_slots(s); slot++)
            if (s->processes[slot].pid == pid)
                return &s->processes[slot];
        pid = parent_of(s, pid);
    }
    return NULL;
}

static struct result_host *host_find(struct result *r, uint32_t pid)
{
    for (size_t i = 0; i < r->host_count; i++)
        if (r->hosts[i].pid == pid)
            return &r->hosts[i];
    return NULL;
}

static struct result_host *host_get(struct result *r, const struct session *s,
                                    const struct session_host *from)
{
    const struct session_process *p = rank_process(s, from->pid);
    struct result_host *h = host_find(r, from->pid);

    if (h)
        return h;
    r->hosts = xreallocarray(r->hosts, r->host_count + 1, sizeof *r->hosts);
    h = &r->hosts[r->host_count++];
    *h = (struct result_host){
        .pid = from->pid,
        .rank = p ? p->rank : 0,
        .ranked = p,
        .below = !p || p->pid != from->pid,
    };
    snprintf(h->program, sizeof h->program, "%.*s",
             (int)sizeof from->program - 1, from->program);
    return h;
}

/* A process that became another program by exec has two entries. */
static void host_merge(struct result_host *h, const struct session_host *from)
{
    uint64_t peak = value_load(&from->peak), own = value_load(&from->own);

    h->peak_bytes = most_u64(h->peak_bytes, peak > own ? peak - own : 0);
    for (int i = 0; i < SESSION_HOST_KINDS; i++)
        h->high_bytes[i] =
            most_u64(h->high_bytes[i], value_load(&from->high[i]));
    for (int i = 0; i < RESULT_HOST_STATES; i++)
        h->state_bytes[i] =
            most_u64(h->state_bytes[i], value_load(&from->state_bytes[i]));
}

static int host_compare(const void *one, const void *other)
{
    const struct result_host *a = one, *b = other;

    if (a->ranked != b->ranked)
        return a->ranked ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->below != b->below)
        return a->below ? 1 : -1;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

static void hosts_collect(struct result *r, const struct session *s)
{
    uint64_t shm_peak = value_load(&s->shm_peak);

    r->host_limit_bytes = s->host_limit_bytes;
    r->host_ranks = s->world_size;
    r->host_node_ranks = s->local_world_size;
    r->host_shared_bytes = shm_peak > s->shm_start ? shm_peak - s->shm_start
                                                   : 0;
    for (uint32_t i = 0; i < hosts_count(s); i++)
        if (atomic_load(&s->hosts[i].state) != SESSION_FREE)
            host_merge(host_get(r, s, &s->hosts[i]), &s->hosts[i]);
    if (r->host_count)
        qsort(r->hosts, r->host_count, sizeof *r->hosts, host_compare);
    if (atomic_load(&s->host_count) > SESSION_HOSTS)
        result_note(r, "%u processes had memory on the host; that of the "
                       "first %u is counted",
                    atomic_load(&s->host_count), SESSION_HOSTS);
}

/* --- a node --------------------------------------------------------------- */

/* Of the processes of RANK, where it was run; ANY: of all, and of no rank. */
static uint64_t rank_bytes(const struct result *r, uint32_t rank)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < r->host_count; i++)
        if (r->hosts[i].ranked && r->hosts[i].rank == rank)
            bytes += r->hosts[i].peak_bytes;
    return bytes;
}

/* The rank that was run in the place of RANK. */
static uint32_t stands_for(const struct result *r, uint32_t rank)
{
    for (size_t i = 0; i < r->rank_count; i++)
        if (rank_set_has(&r->ranks[i].members, rank))
            return r->ranks[i].rank;
    return rank;
}

static uint64_t all_bytes(const struct result *r, bool ranked)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < r->host_count; i++)
        if (r->hosts[i].ranked == ranked)
            bytes += r->hosts[i].peak_bytes;
    return bytes;
}

/* Of the ranks of the fullest node. */
static uint64_t ranks_bytes(const struct result *r)
{
    uint64_t most = 0, node = 0;

    if (!r->host_ranks || !r->host_node_ranks)
        return all_bytes(r, true);
    for (uint32_t rank = 0; rank < r->host_ranks; rank++) {
        uint64_t bytes = rank_bytes(r, rank);

        if (rank % r->host_node_ranks == 0)
            node = 0;
        node += bytes ? bytes : rank_bytes(r, stands_for(r, rank));
        most = most_u64(most, node);
    }
    return most;
}

static void hosts_judge(struct result *r)
{
    r->host_bytes = r->host_count
                        ? ranks_bytes(r) + all_bytes(r, false) +
                              r->host_shared_bytes
                        : 0;
    if (!r->host_limit_bytes || r->host_bytes <= r->host_limit_bytes ||
        (r->verdict != VERDICT_FITS && r->verdict != VERDICT_OVER_LIMIT))
        return;
    r->verdict = VERDICT_HOST;
    r->exit_status = CMD_RUN_HOST;
}

void result_hosts_fill(struct result *r, const struct session *s)
{
    hosts_collect(r, s);
    hosts_judge(r);
}

bool result_has_hosts(const struct result *r)
{
    return r->host_bytes != 0;
}

uint64_t result_hosts_high(const struct result *r, enum session_host_kind kind)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < r->host_count; i++)
        bytes += r->hosts[i].high_bytes[kind];
    return bytes;
}

bool result_host_grows(const struct result *r)
{
    bool grows = false;

    for (int i = 0; i < GROWTH_HOST_KINDS; i++)
        grows |= r->host_growth[i].bytes != 0;
    return grows;
}
