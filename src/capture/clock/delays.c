/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/clock/delays.h"

#include <signal.h>
#include <unistd.h>

#include "capture/clock/channel.h"
#include "capture/core/run/process.h"
#include "playback/delay_library.h"

static struct delay_ranks ranks;
static struct simulation_delays delays;
static struct stragglers stragglers;
static bool by_environment; /* the rank is known from the beginning */

/* The others of the job see a process that was killed. */
static void on_died(void *context, uint32_t rank, uint32_t step)
{
    (void)context;
    (void)rank;
    (void)step;
    kill(getpid(), SIGKILL);
}

const char *delays_open(struct simulation_options *options)
{
    static struct err err;

    ranks = (struct delay_ranks){.rank = 0};
    by_environment = false;
    stragglers = options->stragglers;
    delays = (struct simulation_delays){.table = NULL};
    if (!options->delays)
        return NULL;
    delays = *options->delays;
    delays.ranks = &ranks;
    delays.died = on_died;
    options->delays = &delays;
    if (*delays.table->library &&
        delay_library_open(delays.table->library, &delays.library, &err))
        return err.text;
    return NULL;
}

bool delays_count_steps(void)
{
    return delays_need_steps(delays.table);
}

static void rank_is(uint32_t rank, struct simulator *simulator)
{
    ranks.rank = rank;
    ranks.members = (struct rank_set){.count = 0};
    channels_members(rank, &ranks.members);
    if (stragglers.spread > 0)
        simulator_slow(simulator, stragglers_of(&stragglers, rank,
                                                &ranks.members));
}

void delays_record(const struct trace_item *item, struct simulator *simulator)
{
    if (item->head.kind == TRACE_PROCESS) {
        const struct trace_process *p = trace_as_process(item);
        by_environment = p->world_size > 1;
        ranks.local = (uint32_t)p->local_world_size;
        rank_is((uint32_t)p->rank, simulator);
    } else if (item->head.kind == TRACE_COMMUNICATOR && !by_environment) {
        const struct trace_communicator *c = trace_as_communicator(item);
        by_environment = c->ranks > 1;
        if (by_environment)
            rank_is((uint32_t)c->rank, simulator);
    }
}
