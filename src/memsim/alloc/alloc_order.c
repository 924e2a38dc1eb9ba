/* SPDX-License-Identifier: Apache-2.0
 * ska::flat_hash_map of c10/util/flat_hash_map.h as far as its order goes:
 * Robin Hood hashing with Fibonacci's multiplier, at most half full, visited by
 * ascending place. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/alloc/alloc_internal.h"

enum { FEWEST_BUCKETS = 4, FEWEST_LOOKUPS = 4 };

struct alloc_place {
    struct alloc_private *pool; /* NULL: empty */
    int distance;               /* from where its hash wants it */
};

/* MempoolIdHash, fibonacci_hash_policy::index_for_hash */
static size_t bucket_of(const struct alloc_order *o,
                        const struct alloc_private *p)
{
    uint64_t hash = p->id.first ? p->id.first : p->id.second;

    return (size_t)(hash * UINT64_C(11400714819323198485) >>
                    (64 - o->buckets_log2));
}

static void order_grow(struct alloc_order *o)
{
    struct alloc_place *old = o->places;
    size_t old_count = o->place_count;
    size_t buckets = o->buckets ? 2 * o->buckets : FEWEST_BUCKETS;

    o->buckets = buckets;
    o->buckets_log2 = __builtin_ctzll(buckets);
    o->lookups =
        o->buckets_log2 > FEWEST_LOOKUPS ? o->buckets_log2 : FEWEST_LOOKUPS;
    /* A place more than can be filled ends what alloc_order_erase shifts. */
    o->place_count = buckets + (size_t)o->lookups;
    o->places = xcalloc(o->place_count, sizeof *o->places);
    o->count = 0;
    for (size_t i = 0; i < old_count; i++)
        if (old[i].pool)
            alloc_order_insert(o, old[i].pool);
    free(old);
}

/* emplace, emplace_new_key */
void alloc_order_insert(struct alloc_order *o, struct alloc_private *pool)
{
    struct alloc_place in = {pool, 0}, *at, *first = NULL;

    if (2 * (o->count + 1) > o->buckets)
        order_grow(o);
    for (at = &o->places[bucket_of(o, pool)]; at->pool; at++) {
        if (at->distance < in.distance) {
            struct alloc_place out = *at;

            *at = in;
            in = out;
            first = first ? first : at;
        }
        if (++in.distance < o->lookups)
            continue;
        if (first)
            first->pool = in.pool;
        order_grow(o);
        alloc_order_insert(o, pool);
        return;
    }
    *at = in;
    o->count++;
}

void alloc_order_erase(struct alloc_order *o, size_t i)
{
    struct alloc_place *at = &o->places[i];

    for (; at[1].pool && at[1].distance > 0; at++)
        *at = (struct alloc_place){at[1].pool, at[1].distance - 1};
    at->pool = NULL;
    o->count--;
}

struct alloc_private *alloc_order_next(const struct alloc_order *o, size_t *i)
{
    while (*i < o->place_count && !o->places[*i].pool)
        ++*i;
    return *i < o->place_count ? o->places[*i].pool : NULL;
}

void alloc_order_remove(struct alloc_order *o, const struct alloc_private *pool)
{
    for (size_t i = 0; i < o->place_count; i++)
        if (o->places[i].pool == pool) {
            alloc_order_erase(o, i);
            return;
        }
}
