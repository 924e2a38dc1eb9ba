/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/result/result.h"

#define NEAR_SHARE 50 /* one in so many */

/* --- going through them --------------------------------------------------- */

bool result_walk_next(const struct result *r, struct result_walk *walk)
{
    size_t rank = walk->rank ? (size_t)(walk->rank - r->ranks) : 0;
    size_t device = 0;

    if (walk->device)
        device = (size_t)(walk->device - walk->rank->devices) + 1;
    for (; rank < r->rank_count; rank++, device = 0) {
        if (device >= r->ranks[rank].device_count)
            continue;
        *walk = (struct result_walk){&r->ranks[rank],
                                     &r->ranks[rank].devices[device]};
        return true;
    }
    return false;
}

char *result_rank_members(const struct result_rank *rank)
{
    return rank->members.count ? rank_set_text(&rank->members)
                               : xasprintf("%u", rank->rank);
}

uint64_t result_rank_count(const struct result_rank *rank)
{
    return rank->members.count ? rank->members.count : 1;
}

/* --- classes -------------------------------------------------------------- */

static bool devices_alike(const struct result_device *x,
                          const struct result_device *y)
{
    return !x->oom_count && !y->oom_count && x->own == y->own &&
           x->peak_used_bytes == y->peak_used_bytes &&
           x->peak_reserved_bytes == y->peak_reserved_bytes &&
           x->peak_allocated_bytes == y->peak_allocated_bytes;
}

static bool is_near(uint64_t x, uint64_t y, uint64_t whole)
{
    return (x > y ? x - y : y - x) <= whole / NEAR_SHARE;
}

static bool devices_near(const struct result_device *x,
                         const struct result_device *y)
{
    uint64_t used = x->peak_used_bytes;

    return !x->oom_count && !y->oom_count && x->own == y->own &&
           is_near(used, y->peak_used_bytes, used) &&
           is_near(x->peak_reserved_bytes, y->peak_reserved_bytes, used) &&
           is_near(x->peak_allocated_bytes, y->peak_allocated_bytes, used);
}

static bool ranks_compare(const void *list, size_t one, size_t other,
                          bool (*devices)(const struct result_device *,
                                          const struct result_device *))
{
    const struct result *r = list;
    const struct result_rank *a = &r->ranks[one], *b = &r->ranks[other];

    if (a->device_count != b->device_count || strcmp(a->program, b->program))
        return false;
    for (size_t i = 0; i < a->device_count; i++)
        if (!devices(&a->devices[i], &b->devices[i]))
            return false;
    return true;
}

static bool ranks_alike(const void *list, size_t one, size_t other)
{
    return ranks_compare(list, one, other, devices_alike);
}

static bool ranks_near(const void *list, size_t one, size_t other)
{
    return ranks_compare(list, one, other, devices_near);
}

static void members_add(const void *list, size_t item, struct rank_set *to)
{
    const struct result *r = list;
    const struct result_rank *rank = &r->ranks[item];
    struct rank_set alone = {.count = 0};

    rank_set_add(&alone, rank->rank);
    rank_set_merge(to, rank->members.count ? &rank->members : &alone);
    rank_set_fini(&alone);
}

void result_ranks_group(const struct result *result,
                        struct rank_classes *classes)
{
    static const struct rank_class_ops ops = {ranks_alike, members_add};

    rank_classes_make(classes, result->rank_count, &ops, result);
}

void result_ranks_group_near(const struct result *result,
                             struct rank_classes *classes)
{
    static const struct rank_class_ops ops = {ranks_near, members_add};

    rank_classes_make(classes, result->rank_count, &ops, result);
}

/* The ranks that go are as the first of their class: they have no OOMs. */
void result_ranks_classify(struct result *r)
{
    struct rank_classes classes;
    size_t kept = 0;

    if (r->rank_count <= RESULT_RANKS_APART)
        return;
    result_ranks_group(r, &classes);
    for (size_t i = 0; i < r->rank_count; i++) {
        struct result_rank *rank = &r->ranks[i];
        rank_set_fini(&rank->members);
        if (kept < classes.count && classes.all[kept].first == i) {
            rank->members = classes.all[kept].members;
            classes.all[kept].members = (struct rank_set){.count = 0};
            r->ranks[kept++] = *rank;
        } else {
            for (size_t k = 0; k < rank->device_count; k++)
                free(rank->devices[k].others);
            free(rank->devices);
        }
    }
    r->rank_count = kept;
    rank_classes_fini(&classes);
}

void result_ranks_expand(struct result *result, const struct run_ranks *classes)
{
    for (size_t i = 0; i < result->rank_count; i++) {
        struct rank_set members = {.count = 0};
        members_add(result, i, &members);
        for (size_t k = 0; k < classes->count; k++)
            if (rank_set_has(&members, classes->all[k].rank))
                rank_set_merge(&members, &classes->all[k].members);
        rank_set_fini(&result->ranks[i].members);
        if (members.count > 1)
            result->ranks[i].members = members;
        else
            rank_set_fini(&members);
    }
}
