/* SPDX-License-Identifier: Apache-2.0
 *
 *   others_meet()   a collective is submitted: a meet of the simulator's, and a
 *                   point of the meeting for it and each of its messages
 *   on_came()       it has come: the others learn of it; the point is open
 *   on_look()       the simulator asks how far it may go: open points whose
 *                   members have all come are closed, or the process sleeps */
#include "capture/clock/others.h"

#include <string.h>

#include "capture/clock/channel.h"
#include "capture/core/run/meeting.h"
#include "common/base/xmalloc.h"

#define OPEN_MOST 64 /* points at a time that the meeting is asked for */

/* One of a meet's: all of a collective, or a message. */
struct link {
    struct meeting_point point;
    uint32_t meet; /* of the simulator's, that the others come to */
    uint32_t next; /* of the same own meet; or free */
    uint64_t own_ns;
    bool alone; /* there was no room for it in the meeting */
};

static struct sim *sim;
static struct link *links;
static size_t link_count, link_capacity;
static uint32_t link_free;
static uint32_t *first_of; /* by own meet: its links */
static size_t first_capacity;
static uint32_t *open_links;
static size_t open_count, open_capacity;
static bool patient;

/* --- links ---------------------------------------------------------------- */

static uint32_t link_make(void)
{
    uint32_t at = link_free;

    if (at != SIM_NONE) {
        link_free = links[at].next;
        return at;
    }
    xgrow(&links, link_count, &link_capacity, sizeof *links);
    return (uint32_t)link_count++;
}

static void link_drop(uint32_t at)
{
    links[at].next = link_free;
    link_free = at;
}

static void meet_begin(uint32_t meet)
{
    while (meet >= first_capacity)
        xgrow(&first_of, first_capacity, &first_capacity, sizeof *first_of);
    first_of[meet] = SIM_NONE;
}

/* One more of the own MEET: to the others' OTHER. */
static void meet_add(uint32_t meet, uint32_t other,
                     const struct meeting_point *point)
{
    uint32_t at = link_make();

    links[at] = (struct link){
        .point = *point, .meet = other, .next = first_of[meet]};
    first_of[meet] = at;
}

static void link_open(uint32_t at, uint64_t ns)
{
    xgrow(&open_links, open_count, &open_capacity, sizeof *open_links);
    open_links[open_count++] = at;
    links[at].own_ns = ns;
    links[at].alone = memsim_meeting_put(&links[at].point, ns) != 0;
}

/* --- what the simulator says ---------------------------------------------- */

static void on_came(void *context, uint32_t meet, uint64_t ns)
{
    (void)context;
    for (uint32_t at = first_of[meet]; at != SIM_NONE; at = links[at].next)
        link_open(at, ns);
}

static void on_ended(void *context, uint32_t meet, uint64_t ns)
{
    (void)context;
    links[first_of[meet]].point.ended = true;
    link_open(first_of[meet], ns);
}

/* Tells the simulator of the open link AT, where that is complete. */
static bool link_close(uint32_t at)
{
    struct link *l = &links[at];
    uint64_t ns = l->own_ns;

    if (!l->alone && !memsim_meeting_get(&l->point, &ns))
        return false;
    if (l->point.ended)
        sim_others_ended(sim, l->meet, ns);
    else
        sim_others_came(sim, l->meet, ns);
    if (l->point.ended == l->point.has_end)
        link_drop(at);
    return true;
}

static bool links_close(void)
{
    size_t kept = 0, had = open_count;

    for (size_t i = 0; i < had; i++) {
        uint32_t at = open_links[i];
        if (!link_close(at))
            open_links[kept++] = at;
    }
    open_count = kept;
    return kept < had;
}

static uint64_t on_look(void *context, uint64_t until_ns)
{
    struct meeting_point points[OPEN_MOST];
    uint64_t safe_ns = 0;

    (void)context;
    while (!links_close()) {
        uint32_t count = 0;
        for (; count < open_count && count < OPEN_MOST; count++)
            points[count] = links[open_links[count]].point;
        safe_ns = memsim_meeting_look(points, count, until_ns, patient);
        if (safe_ns || !patient)
            return safe_ns;
    }
    return 0;
}

/* --- what it submits ------------------------------------------------------ */

/* A collective of all members of CHANNEL. */
static uint32_t collective_meet(struct channel *channel)
{
    uint64_t all = UINT64_MAX >> (MEETING_MEMBERS - channel->count);
    const struct meeting_point point = {.channel = channel->number,
                                        .member = channel->member,
                                        .number = channel->collectives,
                                        .expected = all,
                                        .has_end = true};

    uint32_t meet = sim_meet_others(sim);
    if (meet == SIM_NONE)
        return SIM_NONE;
    meet_begin(meet);
    meet_add(meet, meet, &point);
    return meet;
}

static bool is_neighbour(const struct op_part *parts, uint32_t count)
{
    uint32_t second = parts[0].peer;

    for (uint32_t i = 0; i < count; i++) {
        if (second == parts[0].peer)
            second = parts[i].peer;
        else if (parts[i].peer != parts[0].peer && parts[i].peer != second)
            return false;
    }
    return true;
}

/* Of a group of sends and receives: those whose other side is a process. */
static uint32_t messages_meet(struct channel *channel, const struct op *op,
                              bool *neighbour)
{
    struct op_part own;
    uint32_t count, joined = 0, meet = SIM_NONE;
    const struct op_part *parts = channel_parts(op, &own, &count);
    struct meeting_point point;
    uint64_t whole = 0;

    for (uint32_t i = 0; i < count; i++) {
        whole += parts[i].bytes;
        joined += channel_has(channel, parts[i].peer);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t n = channel_count(channel, parts[i].peer, parts[i].receive);
        if (!channel_message(channel, &parts[i], n, &point))
            continue;
        if (meet == SIM_NONE) {
            meet = sim_meet(sim, 1);
            meet_begin(meet);
        }
        uint32_t other = sim_pair_others(
            sim, meet, world_part(parts[i].bytes, whole, joined));
        meet_add(meet, other, &point);
    }
    *neighbour = meet != SIM_NONE && is_neighbour(parts, count);
    return meet;
}

static uint32_t on_meet(void *context, struct sim *s, const struct op *op,
                        const char *name, bool *neighbour)
{
    struct channel *c = channel_find(op_as_collective(op)->communicator);

    (void)context;
    sim = s;
    if (!c || strstr(name, "Signal"))
        return SIM_NONE;
    if (channel_is_message(name))
        return messages_meet(c, op, neighbour);
    c->collectives++;
    return c->number != MEETING_NONE ? collective_meet(c) : SIM_NONE;
}

/* --- from outside --------------------------------------------------------- */

const struct simulation_others *others_open(void)
{
    static const struct simulation_others others = {
        .sim = {.came = on_came, .ended = on_ended, .look = on_look},
        .meet = on_meet,
    };
    const struct meeting_file *file = memsim_meeting_open();

    links = NULL;
    first_of = open_links = NULL;
    link_count = link_capacity = first_capacity = 0;
    open_count = open_capacity = 0;
    link_free = SIM_NONE;
    patient = true;
    channels_open(file);
    return file ? &others : NULL;
}

void others_record(const struct trace_item *item)
{
    if (item->head.kind == TRACE_PROCESS)
        channels_process(trace_as_process(item));
    else if (item->head.kind == TRACE_COMMUNICATOR)
        channel_record(item);
}

void others_offer(struct simulator *simulator, uint64_t limit_ns)
{
    patient = false;
    while (memsim_meeting_is_wanted() && simulator_advance(simulator, limit_ns))
        continue;
    patient = true;
    uint64_t next_ns = simulator_next_ns(simulator);
    uint64_t host_ns = simulator_host_ns(simulator);
    memsim_meeting_bound(next_ns < host_ns ? next_ns : host_ns);
}
