/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/comm_wider.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/collectives/comm_width.h"

/* Rank = inner + APART x (place + OWN x outer), where PLACE counts the ranks
 * that average gradients. */
struct order {
    uint32_t apart, own, wanted, world;
};

/* --- ranks ---------------------------------------------------------------- */

/* The place of TO that PLACE of FROM is like: the last ones are alike, those
 * that are in one alone are as the last but one. */
static uint32_t place_like(uint32_t place, uint32_t from, uint32_t to)
{
    if (place == from - 1)
        return to - 1;
    if (place + 1 < to)
        return place;
    return to > 1 ? to - 2 : 0;
}

/* RANK, where FROM ranks average, among those where TO do. */
static uint32_t rank_like(const struct order *o, uint32_t rank, uint32_t from,
                          uint32_t to)
{
    uint32_t inner = rank % o->apart, group = rank / o->apart;
    uint32_t place = place_like(group % from, from, to), outer = group / from;

    return inner + o->apart * (place + to * outer);
}

/* RANK of the recorded job in the wider one. */
static uint32_t rank_wider(const struct order *o, uint32_t rank)
{
    return rank_like(o, rank, o->own, o->wanted);
}

static uint32_t world_wider(const struct order *o)
{
    return o->world / o->own * o->wanted;
}

/* Whether C's ranks are equally far apart, in a world of whole groups. */
static bool order_find(const struct comm *c, struct order *o)
{
    if (!c->members || c->members[1] <= c->members[0])
        return false;
    o->apart = c->members[1] - c->members[0];
    o->own = c->ranks;
    for (uint32_t i = 1; i < c->ranks; i++)
        if (c->members[i] != c->members[0] + i * o->apart)
            return false;
    return o->world && o->world % ((uint64_t)o->apart * o->own) == 0 &&
           c->members[0] / o->apart % o->own == 0;
}

/* --- communicators -------------------------------------------------------- */

static void members_wider(const struct order *o, bool is_data, struct comm *c)
{
    uint32_t ranks = is_data ? o->wanted : c->ranks;
    uint32_t *members = c->members ? xcalloc(ranks, sizeof *members) : NULL;

    for (uint32_t i = 0; members && i < ranks; i++)
        members[i] = is_data ? rank_wider(o, c->members[0]) + i * o->apart
                             : rank_wider(o, c->members[i]);
    if (is_data)
        c->rank = place_like(c->rank, c->ranks, ranks);
    c->members = members;
    c->ranks = ranks;
}

static struct comm_log *log_wider(const struct comm_log *from,
                                  const struct order *o, const bool *is_data)
{
    struct comm_log *to = xmalloc(sizeof *to);

    *to = *from;
    to->rank = rank_wider(o, from->rank);
    to->world = world_wider(o);
    to->comms = xcalloc(from->comm_count + 1, sizeof *to->comms);
    for (size_t i = 0; i < from->comm_count; i++) {
        to->comms[i] = from->comms[i];
        members_wider(o, is_data[i], &to->comms[i]);
    }
    return to;
}

static void classes_wider(const struct comm_classes *from,
                          const struct order *o, struct comm_classes *to)
{
    to->world = world_wider(o);
    to->stands = xcalloc(to->world, sizeof *to->stands);
    for (uint32_t r = 0; r < to->world; r++) {
        uint32_t like = rank_like(o, r, o->wanted, o->own);
        to->stands[r] = !from              ? like
                        : like < from->world ? from->stands[like]
                                             : COMM_NONE;
    }
}

/* Adds LOG to W. Returns whether its groups of gradients are in one order. */
static bool log_add(struct comm_wider *w, const struct comm_log *log,
                    const char *average, struct order *o)
{
    bool *is_data = xcalloc(log->comm_count + 1, sizeof *is_data);
    struct err ignored = {""};
    struct comm_width own;
    bool ok = !comm_width_find(log, average, is_data, &own, &ignored);

    o->world = log->world;
    for (size_t i = 0; ok && i < log->comm_count; i++) {
        struct order found = *o;
        if (!is_data[i])
            continue;
        ok = order_find(&log->comms[i], &found) &&
             (!o->own || (found.apart == o->apart && found.own == o->own));
        *o = found;
    }
    if (ok && o->own)
        w->logs[w->count++] = log_wider(log, o, is_data);
    free(is_data);
    return ok && o->own;
}

bool comm_wider_make(struct comm_wider *w, const struct comm_log *const *logs,
                     size_t count, const struct comm_classes *classes,
                     const char *average, uint32_t ranks)
{
    struct order order = {.wanted = ranks};
    bool ok = count > 0;

    *w = (struct comm_wider){
        .logs = xcalloc(count + 1, sizeof(const struct comm_log *))};
    for (size_t i = 0; ok && i < count; i++)
        ok = log_add(w, logs[i], average, &order);
    if (ok)
        classes_wider(classes, &order, &w->classes);
    else
        comm_wider_fini(w);
    return ok;
}

void comm_wider_fini(struct comm_wider *w)
{
    for (size_t i = 0; i < w->count; i++) {
        struct comm_log *log = (struct comm_log *)(uintptr_t)w->logs[i];
        for (size_t k = 0; k < log->comm_count; k++)
            free(log->comms[k].members);
        free(log->comms);
        free(log);
    }
    free(w->logs);
    free(w->classes.stands);
    *w = (struct comm_wider){.count = 0};
}
