/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/time/truth_blocks.h"

/* Whether event I of S is a block that the next event takes back. */
static bool block_passes(const struct truth_side *s, size_t i)
{
    return i + 1 < s->event_count && !s->events[i].is_free &&
           s->events[i + 1].is_free &&
           s->events[i].address == s->events[i + 1].address;
}

/* Whether event I of A and J of B are equal, or both sides end there. */
static bool same_block(const struct truth_side *a, size_t i,
                       const struct truth_side *b, size_t j)
{
    if (i >= a->event_count || j >= b->event_count)
        return i >= a->event_count && j >= b->event_count;
    return a->events[i].is_free == b->events[j].is_free &&
           a->events[i].requested_bytes == b->events[j].requested_bytes;
}

/* Whether B has not the block of event I of A: without it, and passing blocks
 * behind it, A goes on as B does from event J on.
 *
 *     A:  [ +64 -64 ] [ +32 -32 ] +512 ...
 *     B:                          +512 ...
 */
static bool is_alone(const struct truth_side *a, size_t i,
                     const struct truth_side *b, size_t j)
{
    if (same_block(a, i, b, j) ||
        (block_passes(b, j) && same_block(a, i + 2, b, j + 2)))
        return false;
    for (; block_passes(a, i); i += 2)
        if (same_block(a, i + 2, b, j))
            return true;
    return false;
}

bool truth_walk_next(const struct truth_side *estimate,
                     const struct truth_side *run, struct truth_walk *walk,
                     struct truth_pair *pair)
{
    size_t i = walk->estimate, j = walk->run;

    if (is_alone(estimate, i, run, j)) {
        *pair = (struct truth_pair){&estimate->events[i], NULL};
        walk->estimate += 2;
        return true;
    }
    if (is_alone(run, j, estimate, i)) {
        *pair = (struct truth_pair){NULL, &run->events[j]};
        walk->run += 2;
        return true;
    }
    if (i >= estimate->event_count || j >= run->event_count ||
        estimate->events[i].is_free != run->events[j].is_free)
        return false;
    *pair = (struct truth_pair){&estimate->events[i], &run->events[j]};
    walk->estimate++;
    walk->run++;
    return true;
}
