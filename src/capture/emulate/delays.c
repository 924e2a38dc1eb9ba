/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/emulate/delays.h"

#include "capture/core/run/peers.h"
#include "capture/core/run/process.h"
#include "common/trace/session.h"
#include "playback/delay_library.h"

static struct delay_ranks own, all, absent;
/* of calls: any rank's; of this rank's host and GPU; of ranks that do not
 * exist: their hosts and GPUs, their work */
static struct delay_state calls, host, works, lags, peers, peer_works;
static bool some; /* there are delays */
static uint32_t now_step;
static uint64_t come_ns; /* by so much later do the others come next time */

static void ranks_fill(void)
{
    const struct session *session = memsim_session();

    own.local = all.local = absent.local = session->local_world_size;
    own.rank = all.rank = absent.rank = process_rank();
    for (uint32_t r = 0; r < session->world_size; r++) {
        rank_set_add(&all.members, r);
        if (!memsim_peer_is_real(r))
            rank_set_add(&absent.members, r);
    }
}

const char *emulated_delays_open(const struct simulation_options *options)
{
    static struct err err;
    const struct delays *table =
        options->delays ? options->delays->table : NULL;

    if (!table)
        return NULL;
    ranks_fill();
    calls = (struct delay_state){.delays = table, .ranks = &all};
    host = works = lags = (struct delay_state){.delays = table, .ranks = &own};
    peers = peer_works =
        (struct delay_state){.delays = table, .ranks = &absent};
    some = true;
    return *table->library &&
                   delay_library_open(table->library, &calls.library, &err)
               ? err.text
               : NULL;
}

/* The rank that dies as STEP begins, if this process ends with it: this rank,
 * or one that does not exist, for which rank 0 stands. */
static uint32_t dead_rank(uint32_t step)
{
    uint32_t rank = delay_death(&host, step);

    if (rank == DELAY_ANY && !own.rank && absent.members.count)
        rank = delay_death(&peers, step);
    return rank;
}

void emulated_delays_step(uint32_t step, struct emulated_step *s)
{
    *s = (struct emulated_step){.dead = DELAY_ANY};
    if (!some)
        return;
    now_step = step;
    s->dead = dead_rank(step);
    s->sleep_ns = delay_of_step(&host, step);
    uint64_t theirs_ns =
        absent.members.count ? delay_of_step(&peers, step) : 0;
    come_ns += theirs_ns > s->sleep_ns ? theirs_ns - s->sleep_ns : 0;
}

uint64_t emulated_delays_late(struct delay_call *call)
{
    if (!some)
        return 0;
    call->step = now_step;
    uint64_t late_ns = delay_of(&calls, call).late_ns + come_ns;
    come_ns = 0;
    return late_ns;
}

/* By how much S makes a kernel that has no name longer. */
static double gpu_factor(struct delay_state *s)
{
    const struct delay_call kernel = {.name = "",
                                      .kind = OP_LAUNCH,
                                      .engine = SIM_COMPUTE,
                                      .step = now_step};

    return delay_of(s, &kernel).factor;
}

double emulated_delays_lag(void)
{
    if (!some || !absent.members.count)
        return 0;
    double lag = gpu_factor(&peers) / gpu_factor(&lags) - 1;
    return lag > 0 ? lag : 0;
}

struct delay_effect emulated_delays_work(const char *name)
{
    const struct delay_call call = {.name = name,
                                    .kind = OP_LAUNCH,
                                    .engine = SIM_COMPUTE,
                                    .step = now_step};

    if (!some)
        return (struct delay_effect){.factor = 1};
    const struct delay_effect mine = delay_of(&works, &call);
    uint64_t theirs_ns =
        absent.members.count ? delay_of(&peer_works, &call).late_ns : 0;
    come_ns += theirs_ns > mine.late_ns ? theirs_ns - mine.late_ns : 0;
    return mine;
}
