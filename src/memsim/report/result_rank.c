/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/range.h"
#include "common/base/xmalloc.h"
#include "memsim/report/result.h"

bool result_ranks_alike(const struct result_rank *a,
                        const struct result_rank *b)
{
    if (a->device_count != b->device_count)
        return false;
    for (size_t i = 0; i < a->device_count; i++) {
        const struct result_device *x = &a->devices[i], *y = &b->devices[i];

        if (x->oom_count || y->oom_count ||
            x->peak_used_bytes != y->peak_used_bytes ||
            x->peak_reserved_bytes != y->peak_reserved_bytes ||
            x->peak_allocated_bytes != y->peak_allocated_bytes)
            return false;
    }
    return true;
}

/* The members of a class, while it is made. */
struct members {
    struct range *ranges;
    size_t count, capacity;
};

/* Ranks come in ascending order. */
static void member_add(struct members *m, uint32_t rank)
{
    struct range *last = m->count ? &m->ranges[m->count - 1] : NULL;

    if (last && rank == last->first + last->count) {
        last->count++;
        return;
    }
    xgrow(&m->ranges, m->count, &m->capacity, sizeof *m->ranges);
    m->ranges[m->count++] = (struct range){rank, 1, 1};
}

static char *members_text(const struct members *m)
{
    char *text = xmalloc(m->count * 24 + 1), *at = text;

    *at = '\0';
    for (size_t i = 0; i < m->count; i++) {
        const struct range *r = &m->ranges[i];

        at += sprintf(at, "%s%" PRIu32, i ? "," : "", r->first);
        if (r->count > 1)
            at += sprintf(at, "-%" PRIu32, r->first + r->count - 1);
    }
    return text;
}

/* The class of RANK among the first COUNT of R's; COUNT where it has none. */
static size_t class_find(const struct result *r, size_t count,
                         const struct result_rank *rank)
{
    size_t i = 0;

    while (i < count && (strcmp(r->ranks[i].program, rank->program) ||
                         !result_ranks_alike(&r->ranks[i], rank)))
        i++;
    return i;
}

void result_ranks_classify(struct result *r)
{
    size_t count = 0;

    if (r->rank_count <= RESULT_RANKS_APART)
        return;
    struct members *members = xcalloc(r->rank_count, sizeof *members);
    for (size_t i = 0; i < r->rank_count; i++) {
        struct result_rank rank = r->ranks[i];
        size_t class = class_find(r, count, &rank);

        member_add(&members[class], rank.rank);
        if (class == count)
            r->ranks[count++] = rank;
        else
            free(rank.devices); /* as the first one's: it has no OOMs */
        r->ranks[class].member_count++;
    }
    r->rank_count = count;
    for (size_t i = 0; i < count; i++) {
        r->ranks[i].members = members_text(&members[i]);
        free(members[i].ranges);
    }
    free(members);
}
