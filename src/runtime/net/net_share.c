/* SPDX-License-Identifier: Apache-2.0
 * Progressive filling. All rates that are not fixed yet are one level. */
#include "runtime/net/net.h"

#include <math.h>

#define FIXED_BELOW (1 - 1e-12) /* of the level: its limit is reached */

/* What the users that are not fixed put on row R for each unit of the level. */
static double row_sum(const struct net_shares *s, const struct net_row *r,
                      const double *active)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->count; i++) {
        const struct net_load *l = &s->loads[r->first + i];
        sum += l->weight * active[l->pattern];
    }
    return sum;
}

static double weight_of(const struct net_shares *s, const struct net_row *r,
                        uint32_t pattern)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (s->loads[r->first + i].pattern == pattern)
            return s->loads[r->first + i].weight;
    return 0;
}

static bool row_counts(const struct net_row *r, bool edges_alone)
{
    return r->edge || !edges_alone;
}

/* The level at which the next row is full, or a user has all it can use. */
static double next_level(const struct net_shares *s, bool edges_alone,
                         const struct net_user *users, uint32_t count,
                         const struct net_scratch *at)
{
    double level = INFINITY;

    for (uint32_t i = 0; i < s->row_count; i++) {
        at->sum[i] = row_counts(&s->rows[i], edges_alone)
                         ? row_sum(s, &s->rows[i], at->active)
                         : 0;
        if (at->sum[i] > 0)
            level = fmin(level, fmax(at->left[i], 0) / at->sum[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        if (users[i].gbps < 0)
            level = fmin(level, users[i].most_gbps);
    return level;
}

/* Is one of the rows that PATTERN uses full at LEVEL? */
static bool is_full(const struct net_shares *s, uint32_t pattern, double level,
                    const struct net_scratch *at)
{
    for (uint32_t i = 0; i < s->row_count; i++)
        if (at->sum[i] > 0 &&
            at->left[i] * FIXED_BELOW <= at->sum[i] * level &&
            weight_of(s, &s->rows[i], pattern) > 0)
            return true;
    return false;
}

/* USER, which has its rate, no longer rises. */
static void user_fix(const struct net_shares *s, const struct net_user *user,
                     const struct net_scratch *at)
{
    for (uint32_t i = 0; i < s->row_count; i++)
        at->left[i] -= weight_of(s, &s->rows[i], user->pattern) * user->gbps;
    at->active[user->pattern]--;
}

#define OPEN   (-1) /* of a rate: it still rises */
#define FIXING (-2) /* this round fixes it */

/* One round: the level rises until some users are fixed; says how many. */
static uint32_t fill_shares(const struct net_shares *s, bool edges_alone,
                            struct net_user *users, uint32_t count,
                            const struct net_scratch *at)
{
    double level = next_level(s, edges_alone, users, count, at);
    uint32_t fixed = 0;

    for (uint32_t i = 0; i < count; i++)
        if (users[i].gbps == OPEN &&
            (users[i].most_gbps * FIXED_BELOW <= level ||
             is_full(s, users[i].pattern, level, at)))
            users[i].gbps = FIXING;
    for (uint32_t i = 0; i < count; i++)
        if (users[i].gbps == FIXING) {
            users[i].gbps = level;
            user_fix(s, &users[i], at);
            fixed++;
        }
    return fixed;
}

/* Can all have what they can use? */
static bool all_have_most(const struct net_shares *s, bool edges_alone,
                          struct net_user *users, uint32_t count,
                          const struct net_scratch *at)
{
    for (uint32_t i = 0; i < s->pattern_count; i++)
        at->active[i] = 0;
    for (uint32_t i = 0; i < count; i++) {
        users[i].gbps = users[i].most_gbps;
        at->active[users[i].pattern] += users[i].most_gbps;
    }
    for (uint32_t i = 0; i < s->row_count; i++)
        if (row_counts(&s->rows[i], edges_alone) &&
            row_sum(s, &s->rows[i], at->active) > s->rows[i].gbps)
            return false;
    return true;
}

void net_share(const struct net_shares *s, bool edges_alone,
               struct net_user *users, uint32_t count,
               const struct net_scratch *scratch)
{
    uint32_t open = count;

    if (all_have_most(s, edges_alone, users, count, scratch))
        return;
    for (uint32_t i = 0; i < s->row_count; i++)
        scratch->left[i] = s->rows[i].gbps;
    for (uint32_t i = 0; i < s->pattern_count; i++)
        scratch->active[i] = 0;
    for (uint32_t i = 0; i < count; i++) {
        users[i].gbps = OPEN;
        scratch->active[users[i].pattern]++;
    }
    while (open)
        open -= fill_shares(s, edges_alone, users, count, scratch);
}
