/* SPDX-License-Identifier: Apache-2.0
 * What the allocator's files share. PyTorch's names are in brackets; all of it
 * is in c10/cuda/CUDACachingAllocator.cpp. */
#ifndef MEMSIM_MEMSIM_ALLOC_ALLOC_INTERNAL_H
#define MEMSIM_MEMSIM_ALLOC_ALLOC_INTERNAL_H

#include <assert.h>

#include "common/base/units.h"
#include "memsim/alloc/alloc.h"

#define MIN_BLOCK_BYTES   UINT64_C(512) /* kMinBlockSize */
#define SMALL_BYTES       (1 * MIB)     /* kSmallSize: the largest small one */
#define SMALL_SEGMENT     (2 * MIB)     /* kSmallBuffer */
#define LARGE_OWN_SEGMENT (10 * MIB)    /* kMinLargeAlloc */
#define LARGE_ROUNDING    (2 * MIB)     /* kRoundLarge */

/* A stream that used a block other than its own (Block::stream_uses). */
struct alloc_use {
    struct alloc_use *next;
    uint64_t stream;
    bool captured; /* also in block_to_cudagraph_stream_uses */
};

/* Laid out by use: a search touches the first cache line only. */
struct alloc_block {
    struct alloc_block *left, *right, *parent; /* in a tree of its shelf */
    uint64_t bytes, address;
    uint64_t age; /* which of two equal ones is older; 0: it does not count */
    struct alloc_shelf *shelf; /* its pool and stream */
    struct alloc_segment *segment;
    struct alloc_block *prev, *next; /* neighbours in the segment */
    struct alloc_use *uses;
    uint64_t requested_bytes;
    int64_t gc_base; /* pool->searches when it was cached (gc_count_base) */
    uint32_t priority;
    uint32_t event_count;
    bool allocated;
    bool mapped; /* false: a hole of an expandable segment */
};

struct alloc_pool {               /* BlockPool */
    struct alloc_shelf **shelves; /* by ascending stream */
    struct alloc_shelf *latest;   /* the one last asked for */
    size_t shelf_count, shelf_capacity;
    struct alloc_private *owner; /* NULL: the default pool */
    int64_t searches;            /* get_free_blocks_call_count */
    bool small;
};

struct alloc_private { /* PrivatePool */
    struct alloc_private *next;
    struct alloc_pool_id id;
    struct alloc_pool small, large;
    unsigned flags;
    int use_count;
    int64_t segment_count; /* cudaMalloc_count */
};

struct alloc_segment {
    struct alloc_segment *prev, *next;
    struct alloc_block *first;
    uint64_t address, bytes;
    uint64_t chunk_bytes; /* of an expandable segment, else 0 */
    uint64_t age;         /* of its blocks, where they have the segment's */
};

struct alloc_order { /* of pools: that of PyTorch's hash tables */
    struct alloc_place *places;
    size_t place_count, count, buckets;
    int buckets_log2, lookups;
};

struct alloc_scope { /* captures_underway, later allocation_scopes_ */
    struct alloc_private *pool;
    alloc_selects *selects;
    void *context;
};

struct alloc_wait { /* an outstanding event */
    struct alloc_wait *next;
    struct alloc_block *block;
    uint64_t ticket;
};

struct alloc_queue { /* the events of one stream, oldest first */
    struct alloc_queue *next;
    struct alloc_wait *first, **end;
    uint64_t stream;
};

struct alloc {
    const struct alloc_rules *rules;
    struct alloc_conf conf;
    struct alloc_driver driver;
    alloc_listener *listener;
    void *listener_context;
    uint64_t total_bytes;
    uint64_t allowed_bytes;   /* allowed_memory_maximum */
    bool limited;             /* it has a value */
    bool ages_blocks;         /* limited, and garbage collection is on */
    uint64_t reserved_bytes;  /* total_allocated_memory */
    struct alloc_stats stats; /* as alloc_stats_up keeps them */
    struct alloc_stats *told; /* by alloc_stats() */
    struct alloc_pool small, large;
    struct alloc_private *privates;      /* in order of creation */
    const struct alloc_private *serving; /* the one that a request is for */
    struct alloc_order fallbacks;        /* use_on_oom_pools */
    struct alloc_order freeables;        /* graph_pools_freeable */
    struct alloc_scope *scopes;          /* where requests of some streams go */
    size_t scope_count, scope_capacity;
    size_t capture_count; /* num_active_captures_ */
    struct alloc_queue *queues;
    struct alloc_wait *deferred, **deferred_end; /* until no capture */
    struct alloc_segment *segments;
    uint64_t made; /* segments or blocks, whichever have an age */
    struct alloc_block *spare_blocks;
    struct alloc_slab *slabs;
    struct alloc_segment *adopted; /* by alloc_adopt_segment, the last */
    uint32_t seed;
};

/* A request on its way (AllocParams). */
struct alloc_request {
    uint64_t bytes;         /* rounded */
    uint64_t segment_bytes; /* what would be asked of the device */
    struct alloc_shelf *shelf;
    bool expandable; /* expandable segments may serve it */
    struct alloc_block *block;
};

static inline bool block_is_split(const struct alloc_block *b)
{
    return b->prev || b->next;
}

static inline bool block_is_expandable(const struct alloc_block *b)
{
    return b->segment->chunk_bytes != 0;
}

/* Is a CUDA graph being captured, as far as the release can tell? */
static inline bool alloc_is_capturing(const struct alloc *a)
{
    return a->rules->scope_is_capture ? a->scope_count : a->capture_count;
}

/* Neither in use nor waiting for a stream; false for NULL. */
static inline bool block_is_idle(const struct alloc_block *b)
{
    return b && !b->allocated && !b->event_count && !b->uses;
}

/* What was ever allocated is what is there and what was freed. So that this
 * need not be counted, `allocated' is what has to be added to that. */
static inline void alloc_stat_up(struct alloc_stat *s, int64_t amount)
{
    s->current += amount;
    if (s->current > s->peak)
        s->peak = s->current;
}

static inline void alloc_stat_down(struct alloc_stat *s, int64_t amount)
{
    s->current -= amount;
    s->freed += amount;
}

/* A stat array, for all blocks and for POOL's kind. */
static inline void alloc_stats_up(struct alloc_stat *s,
                                  const struct alloc_pool *pool,
                                  uint64_t amount)
{
    alloc_stat_up(&s[ALLOC_ALL], (int64_t)amount);
    alloc_stat_up(&s[pool->small ? ALLOC_SMALL : ALLOC_LARGE], (int64_t)amount);
}

static inline void alloc_stats_down(struct alloc_stat *s,
                                    const struct alloc_pool *pool,
                                    uint64_t amount)
{
    alloc_stat_down(&s[ALLOC_ALL], (int64_t)amount);
    alloc_stat_down(&s[pool->small ? ALLOC_SMALL : ALLOC_LARGE],
                    (int64_t)amount);
}

/* SHELF NULL: of no pool and stream. */
void alloc_tell_listener(struct alloc *a, enum alloc_action action,
                         uint64_t address, uint64_t bytes,
                         const struct alloc_shelf *shelf);

static inline void alloc_tell(struct alloc *a, enum alloc_action action,
                              uint64_t address, uint64_t bytes,
                              const struct alloc_shelf *shelf)
{
    if (a->listener)
        alloc_tell_listener(a, action, address, bytes, shelf);
}

/* alloc_block.c: blocks and how they split and merge */
struct alloc_block *alloc_block_new(struct alloc *a, struct alloc_shelf *shelf,
                                    struct alloc_segment *segment,
                                    uint64_t address, uint64_t bytes);
void alloc_block_delete(struct alloc *a, struct alloc_block *b);
void alloc_block_free_slabs(struct alloc *a);
/* Puts NEW_BLOCK between BEFORE and AFTER, either of which may be NULL. */
void alloc_block_splice(struct alloc_block *new_block,
                        struct alloc_block *before, struct alloc_block *after);
/* Cuts BYTES off the front of free block B, which is on no shelf. Returns the
 * front; B is the rest. */
struct alloc_block *alloc_block_cut(struct alloc *a, struct alloc_block *b,
                                    uint64_t bytes);
/* Makes B, on no shelf, available for reuse (insert_into_blocks). */
void alloc_block_cache(struct alloc_block *b);
/* Merges SRC into its neighbour DST where that may be (try_merge_blocks).
 * Returns the bytes gained, 0 where it may not. */
uint64_t alloc_block_absorb(struct alloc *a, struct alloc_block *dst,
                            struct alloc_block *src);
/* Ends B's use: merges and caches it (free_block). */
void alloc_block_retire(struct alloc *a, struct alloc_block *b);

/* alloc_segment.c: memory from the device and back to it */
struct alloc_segment *alloc_segment_new(struct alloc *a, uint64_t address,
                                        uint64_t bytes, uint64_t chunk_bytes);
void alloc_segment_delete(struct alloc *a, struct alloc_segment *s);
/* Sets R->block to a block of new memory (alloc_block). */
bool alloc_segment_obtain(struct alloc *a, struct alloc_request *r);
void alloc_collect_garbage(struct alloc *a);
bool alloc_release_available(struct alloc *a, const struct alloc_request *r);
void alloc_release_cached(struct alloc *a, struct alloc_pool_id pool);

/* alloc_expand.c: expandable segments */
bool alloc_expand_obtain(struct alloc *a, struct alloc_request *r);
/* Gives the pages that idle block B covers whole back to the device, and its
 * segment if that was all of it (unmap_block). */
void alloc_expand_release(struct alloc *a, struct alloc_block *b);

/* alloc_wait.c: frees that wait for streams or captures */
void alloc_wait_insert(struct alloc *a, struct alloc_block *b);
void alloc_wait_defer(struct alloc *a, struct alloc_block *b);
void alloc_wait_process(struct alloc *a);
/* POOL NULL: every pool. */
void alloc_wait_synchronize(struct alloc *a, const struct alloc_private *pool);
void alloc_wait_drop_uses(struct alloc_block *b);
void alloc_wait_free_all(struct alloc *a);

/* alloc_order.c: sets of pools, in the order in which PyTorch visits them */
void alloc_order_insert(struct alloc_order *o, struct alloc_private *pool);
void alloc_order_remove(struct alloc_order *o,
                        const struct alloc_private *pool);
/* What is at place *I or next after it, with *I its place; NULL: none is. */
struct alloc_private *alloc_order_next(const struct alloc_order *o, size_t *i);
/* Takes out what is at place I, which another may take then. */
void alloc_order_erase(struct alloc_order *o, size_t i);

/* alloc_pool.c: private pools */
void alloc_pool_init(struct alloc_pool *pool, bool small,
                     struct alloc_private *owner);
/* The pool that a scope has requests on STREAM go to; NULL: the default. */
struct alloc_private *alloc_pool_of_scope(const struct alloc *a,
                                          uint64_t stream);
/* The pool ID, created where it is unknown; NULL for the default pool. */
struct alloc_private *alloc_pool_obtain(struct alloc *a,
                                        struct alloc_pool_id id);
/* P has no blocks. */
void alloc_pool_delete(struct alloc *a, struct alloc_private *p);
void alloc_pool_free_all(struct alloc *a);

#endif
