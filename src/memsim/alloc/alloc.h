/* SPDX-License-Identifier: Apache-2.0
 * A model of PyTorch's CUDA caching allocator, exact for every event: for the
 * calls of a program it makes the same cudaMalloc and cudaFree calls in the
 * same order and returns the same offsets.
 *
 * One instance is one device's DeviceCachingAllocator. It does no I/O, reads
 * no clock and prints nothing; it calls the device only through struct
 * alloc_driver. It is not thread-safe. It ends the program if the host has no
 * memory left (xmalloc). doc/allocator.md names PyTorch's function for every
 * rule and lists what is left out.
 *
 * A call is O(log n) in the blocks of one pool unless said otherwise; memory
 * is proportional to the live and cached blocks. */
#ifndef MEMSIM_MEMSIM_ALLOC_ALLOC_H
#define MEMSIM_MEMSIM_ALLOC_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memsim/alloc/alloc_conf.h"

struct alloc;
struct alloc_block; /* a part of a segment, in use or cached */

/* The device. A callback may not call back into the instance. */
struct alloc_driver {
    void *context;       /* of the calls on memory */
    void *event_context; /* of the calls on events */
    /* cudaMalloc: the address, or 0 if the device has no memory. */
    uint64_t (*malloc)(void *context, uint64_t bytes);
    void (*free)(void *context, uint64_t address, uint64_t bytes);
    /* cuMemAddressReserve and cuMemAddressFree: addresses without memory. */
    uint64_t (*reserve)(void *context, uint64_t bytes);
    void (*unreserve)(void *context, uint64_t address, uint64_t bytes);
    /* cuMemCreate with cuMemMap, and the reverse. False: no memory. */
    bool (*map)(void *context, uint64_t address, uint64_t bytes);
    void (*unmap)(void *context, uint64_t address, uint64_t bytes);
    /* What cudaMemGetInfo calls free. */
    uint64_t (*free_bytes)(void *context);
    /* cudaEventRecord on STREAM, for a block being freed that STREAM used. The
     * returned ticket identifies the event. It is not used again after a query
     * that returned true or after a wait. */
    uint64_t (*event_record)(void *event_context,
                             const struct alloc_block *block, uint64_t stream);
    bool (*event_query)(void *event_context, uint64_t ticket);
    void (*event_wait)(void *event_context, uint64_t ticket);
};

/* MempoolId_t; {0, 0} is the default pool. */
struct alloc_pool_id {
    uint64_t first, second;
};

/* The first nine are TraceEntry::Action, recorded where PyTorch records them.
 * The others record what PyTorch does between those. */
enum alloc_action {
    ALLOC_ALLOC,
    ALLOC_FREE_REQUESTED,
    ALLOC_FREE_COMPLETED,
    ALLOC_SEGMENT_ALLOC,
    ALLOC_SEGMENT_FREE,
    ALLOC_SEGMENT_MAP,
    ALLOC_SEGMENT_UNMAP,
    ALLOC_SNAPSHOT,
    ALLOC_OOM,   /* address: the device's free bytes; bytes: rounded */
    ALLOC_SPLIT, /* address and bytes of the remainder */
    ALLOC_MERGE, /* address and bytes of the result */
    ALLOC_RETRY, /* a cudaMalloc after all cached memory was released */
    ALLOC_FLUSH, /* all cached memory is about to be released */
    ALLOC_ACTIONS
};

struct alloc_event {
    enum alloc_action action;
    uint64_t address, bytes, stream;
    struct alloc_pool_id pool;
};

typedef void alloc_listener(void *context, const struct alloc_event *event);

struct alloc_config {
    const struct alloc_rules *rules;
    struct alloc_conf conf;
    uint64_t total_bytes; /* cudaDeviceProp::totalGlobalMem */
    struct alloc_driver driver;
    alloc_listener *listener; /* may be NULL */
    void *listener_context;
};

/* PyTorch's Stat, kept for all blocks, the small pools and the large ones. */
struct alloc_stat {
    int64_t current, peak, allocated, freed;
};

enum alloc_stat_type { ALLOC_ALL, ALLOC_SMALL, ALLOC_LARGE, ALLOC_STAT_TYPES };

/* c10::CachingDeviceAllocator::DeviceStats, field for field. */
struct alloc_stats {
    struct alloc_stat allocation[ALLOC_STAT_TYPES];
    struct alloc_stat segment[ALLOC_STAT_TYPES];
    struct alloc_stat active[ALLOC_STAT_TYPES];
    struct alloc_stat inactive_split[ALLOC_STAT_TYPES];
    struct alloc_stat allocated_bytes[ALLOC_STAT_TYPES];
    struct alloc_stat reserved_bytes[ALLOC_STAT_TYPES];
    struct alloc_stat active_bytes[ALLOC_STAT_TYPES];
    struct alloc_stat inactive_split_bytes[ALLOC_STAT_TYPES];
    struct alloc_stat requested_bytes[ALLOC_STAT_TYPES];
    struct alloc_stat oversize_allocations, oversize_segments;
    int64_t num_alloc_retries, num_ooms, num_sync_all_streams;
    int64_t num_device_alloc, num_device_free;
};

/* CONFIG is copied; its rules must outlive the instance. Never fails. */
struct alloc *alloc_create(const struct alloc_config *config);

/* Frees the instance without calling the driver. A may be NULL. */
void alloc_destroy(struct alloc *a);

/* Returns a block of at least BYTES (not 0), or NULL: out of memory, which is
 * an ALLOC_OOM event and counted. It costs from a few tree steps to a flush of
 * the whole cache. The instance owns the block, which is valid until freed. */
struct alloc_block *alloc_malloc(struct alloc *a, uint64_t bytes,
                                 uint64_t stream);

/* The same from POOL, independent of any capture: for recordings that have
 * each block's pool. An unknown pool is created. */
struct alloc_block *alloc_malloc_from(struct alloc *a,
                                      struct alloc_pool_id pool, uint64_t bytes,
                                      uint64_t stream);

/* Whether alloc_malloc_from would use a cached block. */
bool alloc_is_cached(struct alloc *a, struct alloc_pool_id pool, uint64_t bytes,
                     uint64_t stream);

/* Frees BLOCK, which alloc_malloc returned and which was not freed before. */
void alloc_free(struct alloc *a, struct alloc_block *block);

/* Records that BLOCK is also used on STREAM: its free waits for that stream. */
void alloc_record_stream(struct alloc *a, struct alloc_block *block,
                         uint64_t stream);

/* torch.cuda.empty_cache(); with a POOL other than {0, 0}, of that MemPool. */
void alloc_empty_cache(struct alloc *a, struct alloc_pool_id pool);

/* set_per_process_memory_fraction, 0 to 1. */
void alloc_set_memory_fraction(struct alloc *a, double fraction);

/* Whether a new segment for a request of BYTES would exceed that fraction. */
bool alloc_exceeds_limit(const struct alloc *a, uint64_t bytes);

/* torch.cuda.memory._set_allocator_settings. */
void alloc_set_conf(struct alloc *a, const struct alloc_conf *conf);

void alloc_reset_peak_stats(struct alloc *a);
void alloc_reset_accumulated_stats(struct alloc *a);

/* Private pools, as CUDAGraph and MemPool use them. create makes the pool or
 * adds a user to it; release removes a user. Without users the pool's cached
 * segments may be freed on the device. Between begin and end, allocations on
 * the streams that SELECTS accepts use the pool; begin also adds a user.
 * SELECTS is called at each alloc_malloc; NULL accepts every stream. Each
 * returns 0, or -1 where PyTorch would raise an error (unknown pool, begun
 * twice, released while begun). O(pools). */
typedef bool alloc_selects(void *context, uint64_t stream);

enum {                               /* flags of a pool, from its creation */
       ALLOC_POOL_OWN_ALLOCATOR = 1, /* MemPool(allocator) */
       ALLOC_POOL_USE_ON_OOM = 2,
       ALLOC_POOL_NO_SPLIT = 4,
};

int alloc_pool_create(struct alloc *a, struct alloc_pool_id id, unsigned flags);
int alloc_pool_begin(struct alloc *a, struct alloc_pool_id id,
                     alloc_selects *selects, void *context);
int alloc_pool_end(struct alloc *a, struct alloc_pool_id id);
int alloc_pool_release(struct alloc *a, struct alloc_pool_id id);

/* The calls between these two are made while the calling thread's stream is
 * captured into a graph. PyTorch releases that do not distinguish such calls
 * treat any begun pool as a capture. -1: none was begun. */
void alloc_capture_begin(struct alloc *a);
int alloc_capture_end(struct alloc *a);

/* The current statistics; borrowed until the next call of this function. */
const struct alloc_stats *alloc_stats(const struct alloc *a);

/* Bytes of device memory held: cudaMalloc'ed and mapped. */
uint64_t alloc_reserved_bytes(const struct alloc *a);

uint64_t alloc_block_address(const struct alloc_block *block);
uint64_t alloc_block_bytes(const struct alloc_block *block);
uint64_t alloc_block_requested_bytes(const struct alloc_block *block);
uint64_t alloc_block_stream(const struct alloc_block *block);

/* A block as reports show it. `active`: in use, or freed but waiting for a
 * stream. `segment`: the start of its segment (of an expandable one: of its
 * range of mapped memory). */
struct alloc_block_info {
    uint64_t segment, segment_bytes, address, bytes, requested_bytes, stream;
    struct alloc_pool_id pool;
    bool small, expandable, allocated, active;
};

/* Calls VISIT for every block with memory, in ascending address. O(n log n) */
void alloc_walk(const struct alloc *a,
                void (*visit)(void *context,
                              const struct alloc_block_info *block),
                void *context);

/* Adds a segment that existed before the instance: SEGMENT's bytes at its
 * address, of its stream, pool and kind, as one cached block. Then call
 * alloc_adopt_block for each block in use inside it, in ascending order, and
 * after all segments alloc_adopt_end, which counts them in the stats. Of an
 * expandable segment the bytes are the mapped part, and its reservation is
 * assumed to begin there. They cause no events and no driver calls. -1 or NULL
 * if the segment overlaps another, or if the block is not in cached memory of
 * the last segment. O(segments) and O(blocks). */
int alloc_adopt_segment(struct alloc *a,
                        const struct alloc_block_info *segment);
struct alloc_block *alloc_adopt_block(struct alloc *a, uint64_t address,
                                      uint64_t bytes, uint64_t requested_bytes);
void alloc_adopt_end(struct alloc *a);

/* For tests: true if the internal tables are consistent. O(n log n) */
bool alloc_check(const struct alloc *a);

#endif
