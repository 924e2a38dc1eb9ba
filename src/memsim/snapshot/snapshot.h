/* SPDX-License-Identifier: Apache-2.0
 * What torch.cuda.memory._dump_snapshot() writes: the allocator's segments as
 * they are at the end, and the last events that led there. */
#ifndef MEMSIM_MEMSIM_SNAPSHOT_SNAPSHOT_H
#define MEMSIM_MEMSIM_SNAPSHOT_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "memsim/alloc/alloc.h"
#include "memsim/snapshot/snapshot_frames.h"

enum snapshot_state {
    SNAPSHOT_INACTIVE,      /* cached */
    SNAPSHOT_ALLOCATED,     /* active_allocated */
    SNAPSHOT_AWAITING_FREE, /* active_pending_free: a stream still uses it */
};

/* In allocator_settings; PyTorch's own snapshots do not name their torch. */
#define SNAPSHOT_TORCH_KEY "memsim_torch_version"

struct snapshot_block {
    uint64_t address, bytes, requested_bytes;
    enum snapshot_state state;
    uint32_t stack; /* of its allocation */
};

struct snapshot_segment {
    unsigned device;
    uint64_t address, bytes, stream;
    struct alloc_pool_id pool;
    bool small, expandable;
    struct snapshot_block *blocks; /* ascending, without holes */
    size_t block_count;
};

struct snapshot_event {
    enum alloc_action action; /* up to ALLOC_OOM */
    uint64_t address, bytes, stream;
    uint64_t time_us; /* 0: not recorded */
    struct alloc_pool_id pool;
    uint32_t stack; /* a number of the frames' */
};

struct snapshot_trace {
    struct snapshot_event *events;
    size_t count, capacity;
};

struct snapshot {
    struct snapshot_segment *segments; /* by device, then address */
    size_t segment_count, segment_capacity;
    struct snapshot_trace *traces; /* one a device */
    size_t trace_count;
    struct snapshot_frames frames;
    char *torch_version;       /* where it was us who wrote it, else NULL */
    char *settings;            /* PYTORCH_CUDA_ALLOC_CONF as it was, or NULL */
    bool simulated;            /* it has the mark of simulated.h */
    const char *since_version; /* the snapshot's own form: not older than this
                                  torch; a constant */
};

/* The events of all devices in the order of their times: where none are
 * recorded, one device after another. Starts zeroed, with SNAPSHOT. */
struct snapshot_order {
    const struct snapshot *snapshot;
    size_t *at; /* each device's next event; snapshot_order_fini frees it */
};

/* The next event, with its device and its place among that one's; NULL at the
 * end. */
const struct snapshot_event *snapshot_order_next(struct snapshot_order *order,
                                                 unsigned *device,
                                                 size_t *place);
void snapshot_order_fini(struct snapshot_order *order); /* back to the start */

/* The name that PyTorch gives ACTION ("alloc"); NULL past ALLOC_OOM. */
const char *snapshot_action_name(enum alloc_action action);

/* ALLOC_ACTIONS where NAME is none. */
enum alloc_action snapshot_action_find(const char *name);

/* Reads BYTES of a pickle, whatever they hold: nothing but data is built, and
 * no more than a fixed multiple of BYTES of memory is used. ORIGIN stands for
 * the file in messages. Returns 0, or -1 with *SNAPSHOT empty. */
int snapshot_parse(const void *pickle, size_t bytes, const char *origin,
                   struct snapshot *snapshot, struct err *err);

/* The same of the file PATH. */
int snapshot_load(const char *path, struct snapshot *snapshot, struct err *err);

/* Does the file begin as a pickle of protocol 2 or later does? */
bool snapshot_is_pickle(const void *start, size_t bytes);

void snapshot_fini(struct snapshot *snapshot);

/* Adds a segment or an event; the blocks of a new segment are none. */
struct snapshot_segment *snapshot_add_segment(struct snapshot *snapshot);
void snapshot_add_event(struct snapshot *snapshot, unsigned device,
                        const struct snapshot_event *event);

/* The segments of DEVICE as they were before its first event, found by undoing
 * the events one by one: RESULT has only segments, and none where the history
 * is whole. The size of a block that is not there any more is not in the
 * snapshot: it is what CONF rounds its request to, plus what is left to the
 * next block where that is too little to be a block of its own. Returns 0, or
 * -1 where the events contradict the segments (ORIGIN:event N: ...). */
int snapshot_rewind(const struct snapshot *snapshot, unsigned device,
                    const struct alloc_conf *conf, const char *origin,
                    struct snapshot *result, struct err *err);

/* Sorts segments and blocks and checks that they tile. */
int snapshot_check(struct snapshot *snapshot, const char *origin,
                   struct err *err);

/* Writes a pickle (protocol 2) that torch.cuda._memory_viz and PyTorch's
 * memory_viz page read. Returns 0, or -1 with errno set. */
int snapshot_write(const struct snapshot *snapshot, FILE *out);

#endif
