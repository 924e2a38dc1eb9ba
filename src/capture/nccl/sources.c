/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/nccl/sources.h"

#include "capture/core/run/differ.h"
#include "capture/core/run/process.h"
#include "common/trace/rank_axis.h"
#include "common/trace/session.h"

_Static_assert(MAILBOX_SEATS <= UINT8_MAX + 1, "BY has a byte for each");

void sources_find(const struct communicator *c, struct sources *s)
{
    s->count = memsim_mailbox_ranks(&c->box, s->rank);
}

/* Whether it is known which ranks of the world those of C are. */
static bool has_places(const struct communicator *c)
{
    const struct session *session = memsim_session();

    return c->places || (session && session->world_size == (uint32_t)c->ranks);
}

static uint32_t place_of(const struct communicator *c, uint32_t rank)
{
    return c->places ? c->places[rank] : rank;
}

void sources_assign(const struct communicator *c, const struct sources *s,
                    uint32_t first, uint32_t count, uint8_t *by)
{
    struct rank_axis axes[RANK_AXES];
    uint32_t axis_count = has_places(c) ? memsim_ranks_axes(axes) : 0;
    uint32_t run[MAILBOX_SEATS];

    for (uint32_t i = 0; i < s->count; i++)
        run[i] = place_of(c, s->rank[i]);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t stand = rank_axis_stand(axes, axis_count, run, s->count,
                                         place_of(c, first + r));

        by[r] = 0;
        while (run[by[r]] != stand)
            by[r]++;
    }
}
