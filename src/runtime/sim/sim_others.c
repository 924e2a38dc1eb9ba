/* SPDX-License-Identifier: Apache-2.0
 * Members of meets in other simulators.
 *
 *   own member comes ──► came() ─► look() ... sim_others_came() ──► it starts
 *   own member ends ──► ended() ─► look() ... sim_others_ended() ──► it is done
 *
 * Between the two of a line the meet is open: another simulator may do at any
 * moment what concerns this one, so nothing is done here before look() has said
 * that it is safe. */
#include "runtime/sim/sim_internal.h"

void sim_others(struct sim *s, const struct sim_others *others)
{
    s->others = *others;
}

uint32_t sim_meet_others(struct sim *s)
{
    uint32_t number = sim_meet(s, 2);

    if (number != SIM_NONE)
        s->groups[number].others = true;
    return number;
}

uint32_t sim_pair_others(struct sim *s, uint32_t a, uint32_t a_part)
{
    uint32_t other = sim_meet(s, 1);

    if (other == SIM_NONE || sim_pair(s, a, a_part, other, 0))
        return SIM_NONE;
    s->groups[a].others = true;
    return other;
}

/* --- what this one tells -------------------------------------------------- */

void others_tell_came(struct sim *s, uint32_t group, uint64_t ns)
{
    const struct sim_group *g = &s->groups[group];

    s->open += g->arrived < g->expected;
    for (uint32_t i = g->pairs; i != SIM_NONE; i = s->pairs[i].next)
        s->open++;
    s->safe_ns = 0;
    s->others.came(s->others.context, group, ns);
}

void others_tell_ended(struct sim *s, uint32_t group, uint64_t ns)
{
    s->open++;
    s->safe_ns = 0;
    s->others.ended(s->others.context, group, ns);
}

/* --- what it is told ------------------------------------------------------ */

static int told_add(struct sim *s, uint32_t group, uint64_t ns)
{
    if (sim_room(s, &s->told, s->told_count, &s->told_capacity,
                 sizeof *s->told))
        return -1;
    s->told[s->told_count++] = (struct sim_told){ns, group};
    s->open--;
    return 0;
}

int sim_others_came(struct sim *s, uint32_t meet, uint64_t ns)
{
    return told_add(s, meet, ns);
}

int sim_others_ended(struct sim *s, uint32_t meet, uint64_t ns)
{
    return told_add(s, meet, ns);
}

static uint32_t told_first(const struct sim *s)
{
    uint32_t first = 0;

    for (uint32_t i = 1; i < s->told_count; i++)
        if (s->told[i].ns < s->told[first].ns)
            first = i;
    return first;
}

uint64_t others_next(const struct sim *s)
{
    return s->told_count ? s->told[told_first(s)].ns : SIM_NEVER;
}

uint64_t sim_next(const struct sim *s)
{
    uint64_t own_ns =
        s->device_count ? s->devices[s->heap[0]].next_ns : SIM_NEVER;

    return own_ns < others_next(s) ? own_ns : others_next(s);
}

bool others_let(struct sim *s, uint64_t limit_ns)
{
    while (s->open) {
        uint64_t next_ns = sim_next(s);
        uint64_t until_ns = next_ns < limit_ns ? next_ns : limit_ns;
        uint32_t open = s->open;
        if (until_ns <= s->safe_ns)
            return true;
        s->safe_ns = s->others.look(s->others.context, until_ns);
        if (s->safe_ns < until_ns && s->open == open)
            return false;
    }
    return true;
}

void others_happen(struct sim *s)
{
    uint32_t first = told_first(s);
    const struct sim_told told = s->told[first];
    const struct sim_group *g = &s->groups[told.group];

    s->told[first] = s->told[--s->told_count];
    if (g->members == SIM_NONE)
        group_meet(s, told.group, told.ns);
    else if (g->arrived < g->expected)
        group_begin(s, told.group, told.ns);
    else
        group_finish(s, told.group, told.ns);
}

void others_forget(struct sim *s, uint32_t group)
{
    struct sim_group *g = &s->groups[group];

    s->pairs[g->pairs].next = s->free_pair;
    s->free_pair = g->pairs;
    g->next_free = s->free_group;
    s->free_group = group;
}
