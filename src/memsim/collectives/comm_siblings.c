/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/collectives/comm_siblings.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

struct shifts {
    int64_t *all;
    size_t count, capacity;
};

static void shift_add(struct shifts *s, int64_t shift)
{
    xgrow(&s->all, s->count, &s->capacity, sizeof *s->all);
    s->all[s->count++] = shift;
}

static uint32_t first_member(const struct comm *c)
{
    uint32_t first = c->members[0];

    for (uint32_t i = 1; i < c->ranks; i++)
        if (c->members[i] < first)
            first = c->members[i];
    return first;
}

/* Is there a group SHIFT ranks further, none of whose ranks is COVERED? */
static bool has_room(const struct comm *c, int64_t shift, uint32_t world,
                     const bool *covered)
{
    for (uint32_t i = 0; i < c->ranks; i++) {
        int64_t rank = c->members[i] + shift;
        if (rank < 0 || rank >= world || covered[rank])
            return false;
    }
    return true;
}

static void cover_calls(const struct comm *c, int64_t shift, bool *covered)
{
    for (uint32_t i = 0; i < c->ranks; i++)
        covered[c->members[i] + shift] = true;
}

static bool is_alike(const struct comm *c, int64_t shift,
                     const struct comm_classes *classes)
{
    for (uint32_t i = 0; i < c->ranks; i++)
        if (classes->stands[c->members[i] + shift] !=
            classes->stands[c->members[i]])
            return false;
    return true;
}

size_t comm_siblings(const struct comm *c, const struct comm_classes *classes,
                     int64_t **shifts)
{
    struct shifts s = {NULL, 0, 0};
    uint32_t world = classes ? classes->world : 0;
    bool *covered = xcalloc((size_t)world + 1, sizeof *covered);

    shift_add(&s, 0);
    bool known = has_room(c, 0, world, covered);
    if (known)
        cover_calls(c, 0, covered);
    for (uint32_t rank = 0; known && rank < world; rank++) {
        int64_t shift = (int64_t)rank - first_member(c);
        if (covered[rank] || !has_room(c, shift, world, covered))
            continue;
        cover_calls(c, shift, covered);
        if (is_alike(c, shift, classes))
            shift_add(&s, shift);
    }
    free(covered);
    *shifts = s.all;
    return s.count;
}

size_t comm_rank_siblings(uint32_t rank, const struct comm_classes *classes,
                          int64_t **shifts)
{
    struct comm alone = {.ranks = 1, .members = &rank};

    return comm_siblings(&alone, classes, shifts);
}
