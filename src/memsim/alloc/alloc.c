/* SPDX-License-Identifier: Apache-2.0
 * DeviceCachingAllocator's public calls. */
#include "memsim/alloc/alloc_internal.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/alloc/alloc_shelf.h"

/* allocate() refuses this much before it looks at a device. */
#define TOO_MUCH_BYTES (UINT64_C(1) << 60)

static void update_ageing(struct alloc *a)
{
    a->ages_blocks = a->limited && a->conf.gc_threshold > 0;
}

struct alloc *alloc_create(const struct alloc_config *config)
{
    struct alloc *a = xcalloc(1, sizeof *a);

    a->rules = config->rules;
    a->conf = config->conf;
    a->driver = config->driver;
    a->listener = config->listener;
    a->listener_context = config->listener_context;
    a->total_bytes = config->total_bytes;
    a->deferred_end = &a->deferred;
    a->seed = 2463534242; /* fixed: equal calls give equal trees */
    a->told = xcalloc(1, sizeof *a->told);
    alloc_pool_init(&a->small, true, NULL);
    alloc_pool_init(&a->large, false, NULL);
    if (a->rules->fraction_option)
        alloc_set_memory_fraction(a, a->conf.memory_fraction);
    update_ageing(a);
    return a;
}

void alloc_destroy(struct alloc *a)
{
    if (!a)
        return;
    alloc_wait_free_all(a);
    while (a->segments) {
        for (struct alloc_block *b = a->segments->first; b; b = b->next)
            alloc_wait_drop_uses(b);
        alloc_segment_delete(a, a->segments);
    }
    alloc_pool_free_all(a);
    alloc_shelf_free_all(&a->small);
    alloc_shelf_free_all(&a->large);
    alloc_block_free_slabs(a);
    free(a->told);
    free(a);
}

/* get_allocation_size */
static uint64_t segment_bytes_for(const struct alloc_conf *conf, uint64_t bytes)
{
    if (bytes <= SMALL_BYTES)
        return SMALL_SEGMENT;
    if (bytes < LARGE_OWN_SEGMENT)
        return conf->large_segment_bytes;
    return (bytes + LARGE_ROUNDING - 1) & ~(LARGE_ROUNDING - 1);
}

static uint64_t grown_bytes(const struct alloc_block *b)
{
    return b->bytes + (b->next && !b->next->mapped ? b->next->bytes : 0);
}

/* Of the expandable blocks that fit, PyTorch goes on from B as long as the
 * next one could grow to less. */
static struct alloc_block *least_growing(struct alloc_block *b)
{
    struct alloc_block *next = shelf_next(b);

    while (block_is_expandable(b) && next &&
           grown_bytes(next) < grown_bytes(b)) {
        b = next;
        next = shelf_next(next);
    }
    return b;
}

static struct alloc_block *skip_expandable(struct alloc_block *b)
{
    while (b && block_is_expandable(b))
        b = shelf_next(b);
    return b;
}

/* May a block of BLOCK_BYTES serve a request of BYTES? Oversize blocks serve
 * oversize requests only, and not much smaller ones. */
static bool size_matches(const struct alloc_conf *conf, uint64_t bytes,
                         uint64_t block_bytes)
{
    if (bytes < conf->max_split_bytes)
        return block_bytes < conf->max_split_bytes;
    return block_bytes < bytes + conf->max_non_split_rounding_bytes;
}

/* The block that get_free_block would take, or NULL. */
static struct alloc_block *find_cached(const struct alloc *a,
                                       const struct alloc_request *r)
{
    struct alloc_block *b = shelf_at_least(r->shelf, r->bytes);

    if (b && block_is_expandable(b))
        b = r->expandable ? least_growing(b) : skip_expandable(b);
    return b && size_matches(&a->conf, r->bytes, b->bytes) ? b : NULL;
}

static bool take_cached(struct alloc *a, struct alloc_request *r)
{
    if (a->ages_blocks)
        r->shelf->pool->searches++;
    r->block = find_cached(a, r);
    if (r->block)
        shelf_remove(r->block);
    return r->block != NULL;
}

/* try_mempool_fallback: a default request may use what a MemPool made with
 * use_on_oom has cached. */
static bool take_from_fallback(struct alloc *a, struct alloc_request *r)
{
    struct alloc_private *p;

    if (!a->rules->pool_is_fallback || r->shelf->pool->owner)
        return false;
    for (size_t i = 0; (p = alloc_order_next(&a->fallbacks, &i)); i++) {
        struct alloc_request other = *r;

        other.shelf = alloc_shelf_obtain(
            r->shelf->pool->small ? &p->small : &p->large, r->shelf->stream);
        other.expandable = a->rules->fallback_expands && r->expandable;
        if (!take_cached(a, &other))
            continue;
        *r = other;
        return true;
    }
    return false;
}

/* The last resort: everything cached goes back to the device. */
static bool retry_request(struct alloc *a, struct alloc_request *r)
{
    if (alloc_is_capturing(a))
        return false;
    alloc_release_cached(a, (struct alloc_pool_id){0, 0});
    a->stats.num_alloc_retries++;
    alloc_tell(a, ALLOC_RETRY, 0, r->segment_bytes, r->shelf);
    return alloc_segment_obtain(a, r);
}

static bool find_block(struct alloc *a, struct alloc_request *r)
{
    if (take_cached(a, r))
        return true;
    r->segment_bytes = segment_bytes_for(&a->conf, r->bytes);
    if (a->ages_blocks)
        alloc_collect_garbage(a);
    if (alloc_segment_obtain(a, r))
        return true;
    if (!a->rules->fallback_is_last && take_from_fallback(a, r))
        return true;
    return (alloc_release_available(a, r) && alloc_segment_obtain(a, r)) ||
           retry_request(a, r) ||
           (a->rules->fallback_is_last && take_from_fallback(a, r));
}

static bool should_split(const struct alloc *a, const struct alloc_request *r)
{
    const struct alloc_pool *pool = r->block->shelf->pool;
    uint64_t remaining = r->block->bytes - r->bytes;

    if (pool->owner && pool->owner->flags & ALLOC_POOL_NO_SPLIT)
        return false;
    if (pool->small || r->expandable)
        return remaining >= MIN_BLOCK_BYTES;
    return r->bytes < a->conf.max_split_bytes && remaining > SMALL_BYTES;
}

/* Cuts the request off the front of its block and caches the remainder. */
static void split_block(struct alloc *a, struct alloc_request *r)
{
    struct alloc_stats *s = &a->stats;
    struct alloc_block *rest = r->block;
    bool was_split = block_is_split(rest);

    r->block = alloc_block_cut(a, rest, r->bytes);
    alloc_block_cache(rest);
    alloc_tell(a, ALLOC_SPLIT, rest->address, rest->bytes, rest->shelf);
    if (block_is_expandable(rest))
        return;
    if (was_split) {
        alloc_stats_down(s->inactive_split_bytes, r->shelf->pool, r->bytes);
    } else {
        alloc_stats_up(s->inactive_split_bytes, r->shelf->pool, rest->bytes);
        alloc_stats_up(s->inactive_split, r->shelf->pool, 1);
    }
}

/* A cached block that stays whole goes into use. */
static void take_whole(struct alloc *a, const struct alloc_request *r)
{
    if (!block_is_split(r->block) || block_is_expandable(r->block))
        return;
    alloc_stats_down(a->stats.inactive_split_bytes, r->shelf->pool,
                     r->block->bytes);
    alloc_stats_down(a->stats.inactive_split, r->shelf->pool, 1);
}

/* alloc_found_block */
static struct alloc_block *hand_out(struct alloc *a, struct alloc_request *r,
                                    uint64_t requested_bytes)
{
    struct alloc_stats *s = &a->stats;

    if (should_split(a, r))
        split_block(a, r);
    else
        take_whole(a, r);
    struct alloc_block *b = r->block;
    b->allocated = true;
    b->requested_bytes = requested_bytes;
    alloc_tell(a, ALLOC_ALLOC, b->address, requested_bytes, b->shelf);
    alloc_stats_up(s->allocation, b->shelf->pool, 1);
    alloc_stats_up(s->allocated_bytes, b->shelf->pool, b->bytes);
    alloc_stats_up(s->active, b->shelf->pool, 1);
    alloc_stats_up(s->active_bytes, b->shelf->pool, b->bytes);
    alloc_stats_up(s->requested_bytes, b->shelf->pool, requested_bytes);
    if (b->bytes >= a->conf.max_split_bytes)
        alloc_stat_up(&s->oversize_allocations, 1);
    return b;
}

static void tell_oom(struct alloc *a, const struct alloc_request *r)
{
    alloc_tell(a, ALLOC_OOM, a->driver.free_bytes(a->driver.context), r->bytes,
               r->shelf);
    a->stats.num_ooms++;
}

/* BYTES of OWNER; NULL: of the pool that scopes and size choose (get_pool). */
static inline void request_init(struct alloc *a, struct alloc_request *r,
                                struct alloc_private *owner, uint64_t bytes,
                                uint64_t stream)
{
    struct alloc_pool *pool;

    r->bytes = alloc_conf_round(&a->conf, bytes);
    if (!owner && a->scope_count)
        owner = alloc_pool_of_scope(a, stream);
    if (r->bytes <= SMALL_BYTES)
        pool = owner ? &owner->small : &a->small;
    else
        pool = owner ? &owner->large : &a->large;
    r->shelf = alloc_shelf_obtain(pool, stream);
    r->expandable = a->conf.expandable_segments &&
                    !(owner && !a->rules->own_pool_expands &&
                      owner->flags & ALLOC_POOL_OWN_ALLOCATOR);
}

static struct alloc_block *request_serve(struct alloc *a,
                                         struct alloc_private *pool,
                                         uint64_t bytes, uint64_t stream)
{
    struct alloc_request r;

    assert(bytes);
    if (bytes >= TOO_MUCH_BYTES)
        return NULL;
    /* Events must not be queried while a capture is underway. */
    if (!alloc_is_capturing(a) && (a->queues || a->deferred))
        alloc_wait_process(a);
    request_init(a, &r, pool, bytes, stream);
    a->serving = pool;
    bool found = find_block(a, &r);
    a->serving = NULL;
    if (found)
        return hand_out(a, &r, bytes);
    tell_oom(a, &r);
    return NULL;
}

struct alloc_block *alloc_malloc(struct alloc *a, uint64_t bytes,
                                 uint64_t stream)
{
    return request_serve(a, NULL, bytes, stream);
}

struct alloc_block *alloc_malloc_from(struct alloc *a,
                                      struct alloc_pool_id pool, uint64_t bytes,
                                      uint64_t stream)
{
    return request_serve(a, alloc_pool_obtain(a, pool), bytes, stream);
}

bool alloc_is_cached(struct alloc *a, struct alloc_pool_id pool, uint64_t bytes,
                     uint64_t stream)
{
    struct alloc_request r;

    if (bytes >= TOO_MUCH_BYTES)
        return false;
    request_init(a, &r, alloc_pool_obtain(a, pool), bytes, stream);
    return find_cached(a, &r) != NULL;
}

void alloc_free(struct alloc *a, struct alloc_block *b)
{
    struct alloc_stats *s = &a->stats;

    assert(b->allocated);
    b->allocated = false;
    alloc_stats_down(s->allocation, b->shelf->pool, 1);
    alloc_stats_down(s->allocated_bytes, b->shelf->pool, b->bytes);
    alloc_tell(a, ALLOC_FREE_REQUESTED, b->address, b->requested_bytes,
               b->shelf);
    if (b->bytes >= a->conf.max_split_bytes)
        alloc_stat_down(&s->oversize_allocations, 1);
    if (!b->uses)
        alloc_block_retire(a, b);
    else if (alloc_is_capturing(a))
        alloc_wait_defer(a, b);
    else
        alloc_wait_insert(a, b);
}

void alloc_record_stream(struct alloc *a, struct alloc_block *b,
                         uint64_t stream)
{
    struct alloc_use **link = &b->uses;

    if (stream == b->shelf->stream)
        return;
    while (*link && (*link)->stream != stream)
        link = &(*link)->next;
    if (!*link) {
        *link = xcalloc(1, sizeof **link);
        (*link)->stream = stream;
    }
    if (alloc_is_capturing(a))
        (*link)->captured = true;
}

void alloc_empty_cache(struct alloc *a, struct alloc_pool_id pool)
{
    /* Before #154746 this was an internal error, and did nothing. */
    if (alloc_is_capturing(a) && !a->rules->flush_spares_captures)
        return;
    alloc_release_cached(a, pool);
}

void alloc_set_memory_fraction(struct alloc *a, double fraction)
{
    a->limited = fraction < 1 || !a->rules->fraction_1_means_unlimited;
    a->allowed_bytes = (uint64_t)(fraction * (double)a->total_bytes);
    update_ageing(a);
}

bool alloc_exceeds_limit(const struct alloc *a, uint64_t bytes)
{
    uint64_t segment_bytes =
        segment_bytes_for(&a->conf, alloc_conf_round(&a->conf, bytes));

    return a->limited && a->reserved_bytes + segment_bytes > a->allowed_bytes;
}

void alloc_set_conf(struct alloc *a, const struct alloc_conf *conf)
{
    a->conf = *conf;
    update_ageing(a);
}

void alloc_tell_listener(struct alloc *a, enum alloc_action action,
                         uint64_t address, uint64_t bytes,
                         const struct alloc_shelf *shelf)
{
    struct alloc_event e = {
        action, address, bytes, shelf ? shelf->stream : 0, {0, 0}};

    if (shelf && shelf->pool->owner)
        e.pool = shelf->pool->owner->id;
    a->listener(a->listener_context, &e);
}

static void each_stat(struct alloc_stats *s, void (*apply)(struct alloc_stat *))
{
    struct alloc_stat *arrays[] = {
        s->allocation,      s->segment,
        s->active,          s->inactive_split,
        s->allocated_bytes, s->reserved_bytes,
        s->active_bytes,    s->inactive_split_bytes,
        s->requested_bytes,
    };

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        for (int type = 0; type < ALLOC_STAT_TYPES; type++)
            apply(&arrays[i][type]);
    apply(&s->oversize_allocations);
    apply(&s->oversize_segments);
}

static void reset_peak(struct alloc_stat *s)
{
    s->peak = s->current;
}

static void reset_accumulated(struct alloc_stat *s)
{
    s->allocated = -s->current;
    s->freed = 0;
}

void alloc_reset_peak_stats(struct alloc *a)
{
    each_stat(&a->stats, reset_peak);
}

void alloc_reset_accumulated_stats(struct alloc *a)
{
    struct alloc_stats *s = &a->stats;

    each_stat(s, reset_accumulated);
    s->num_alloc_retries = s->num_ooms = s->num_sync_all_streams = 0;
    s->num_device_alloc = s->num_device_free = 0;
}

static void complete_stat(struct alloc_stat *s)
{
    s->allocated += s->current + s->freed;
}

const struct alloc_stats *alloc_stats(const struct alloc *a)
{
    *a->told = a->stats;
    each_stat(a->told, complete_stat);
    return a->told;
}

uint64_t alloc_reserved_bytes(const struct alloc *a)
{
    return a->reserved_bytes;
}

uint64_t alloc_block_address(const struct alloc_block *b)
{
    return b->address;
}

uint64_t alloc_block_bytes(const struct alloc_block *b)
{
    return b->bytes;
}

uint64_t alloc_block_requested_bytes(const struct alloc_block *b)
{
    return b->requested_bytes;
}

uint64_t alloc_block_stream(const struct alloc_block *b)
{
    return b->shelf->stream;
}
