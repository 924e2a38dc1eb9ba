/* SPDX-License-Identifier: Apache-2.0
 * Replays recorded allocator calls on the allocator engine: unchanged, to
 * check that the engine does exactly what was recorded, and with other memory
 * or other settings.
 *
 * Pure, except that the source may read a file. */
#ifndef MEMSIM_MEMSIM_REPLAY_REPLAY_H
#define MEMSIM_MEMSIM_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/trace/session.h"
#include "common/trace/play.h"
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/catalogue/vaspace.h"
#include "memsim/alloc/alloc.h"
#include "memsim/snapshot/snapshot.h"

enum { REPLAY_DEVICES = SESSION_DEVICES };

enum replay_kind {
    REPLAY_ALLOC,       /* a block was allocated */
    REPLAY_OOM,         /* a request failed */
    REPLAY_FREE,        /* a block was freed */
    REPLAY_FREE_DONE,   /* the streams have finished with a deferred free */
    REPLAY_SEGMENT,     /* an allocator's call on the device: see action */
    REPLAY_REFUSED,     /* the device had no memory for such a call */
    REPLAY_OTHER_ALLOC, /* memory that is not the allocator's; without an
                           address, a context's or a library's */
    REPLAY_OTHER_FREE,
    REPLAY_RESET,    /* the device's context ended, with all memory */
    REPLAY_FRACTION, /* the program limited its fraction of the GPU */
    REPLAY_SETTINGS, /* it changed the settings of all allocators */
    REPLAY_KINDS
};

/* One step of a recording. `address` is the recorded one: the block's key. */
struct replay_op {
    enum replay_kind kind;
    enum alloc_action action;
    unsigned device;
    bool deferred;  /* REPLAY_FREE: completed by a REPLAY_FREE_DONE */
    uint64_t index; /* in the recording, for messages */
    uint64_t address, bytes, stream, time_ns;
    struct alloc_pool_id pool;
    double fraction;
    const char *settings; /* valid as long as the source is open */
    const char *library;  /* REPLAY_OTHER_ALLOC: who takes it; may be NULL */
    uint64_t plan; /* REPLAY_ALLOC: the convolution whose workspace it is. If it
                      fails, PyTorch catches the error and uses a plan without
                      a workspace from then on. 0: no convolution's */
    uint64_t least_bytes; /* of a workspace whose size is not certain */
    uint64_t most_bytes;  /* likewise; 0: BYTES are certain */
};

struct replay_source {
    void *context;
    const char *name;
    /* Sets *OP to the next step; 1, or 0 at the end, -1 with ERR set. */
    int (*next)(void *context, struct replay_op *op, struct err *err);
    /* Goes back to the first step. Returns 0 or -1. */
    int (*rewind)(void *context, struct err *err);
    bool tells_refusals; /* each refusal is a REPLAY_REFUSED */
    bool real_addresses; /* a real driver chose them: replay_run uses them as
                            long as it asks for the same segments */
    /* The memory in use before the first step, by device; NULL: none. */
    const struct snapshot *initial;
};

/* Called for each event of a replayed device, with the step that caused it. */
typedef void replay_listener(void *context, unsigned device,
                             const struct replay_op *step,
                             const struct alloc_event *event);

/* The state of a replayed device after a step. */
struct replay_moment {
    unsigned device;
    uint64_t index, time_ns; /* of the step */
    uint64_t allocated_bytes, reserved_bytes, used_bytes;
};

typedef void replay_watcher(void *context, const struct replay_moment *now);

/* The libraries' workspaces whose sizes are not certain. */
enum replay_workspaces {
    REPLAY_WORKSPACES, /* as recorded */
    REPLAY_LEAST_WORKSPACES,
    REPLAY_MOST_WORKSPACES,
};

struct replay_config {
    const struct alloc_rules *rules;
    struct alloc_conf conf;
    uint64_t total_bytes; /* the GPU's memory: totalGlobalMem */
    uint64_t other_bytes; /* the part that is used before the first step */
    enum vaspace_model addresses;
    enum replay_workspaces workspaces;
    replay_listener *listener; /* of replay_run; may be NULL */
    replay_watcher *watcher;   /* likewise; with the same context */
    void *listener_context;
};

/* Calls that a recording does not have but that follow from it: empty_cache(),
 * and the release of private pools. Found by replay_mirror. */
struct replay_deed {
    uint64_t index; /* it happens before the step of that index */
    unsigned device;
    bool is_flush;             /* else: the pool lost its last user */
    struct alloc_pool_id pool; /* of a flush: the only one emptied, or {0, 0} */
};

struct replay_plan { /* zeroed: empty */
    struct replay_deed *deeds;
    size_t count, capacity;
    uint64_t steps;
    uint64_t blocks_checked; /* at their recorded address */
    bool exact;              /* all blocks and all segments agree */
    uint64_t peak_reserved_bytes[REPLAY_DEVICES];
    struct alloc_stats stats[REPLAY_DEVICES]; /* at the end */
    char difference[256];                     /* the first, if not exact */
};

/* Replays SOURCE on a device that answers as recorded, and compares every
 * block's address and every segment allocated and freed. Returns 0 with *PLAN
 * filled, also if they differ; -1 if the recording is impossible. */
int replay_mirror(const struct replay_source *source,
                  const struct replay_config *config, struct replay_plan *plan,
                  struct err *err);
void replay_plan_fini(struct replay_plan *plan);

struct replay_oom {
    uint64_t index, time_ns;
    uint64_t requested_bytes, stream;
    uint64_t refused_bytes; /* the request to the device */
    uint64_t free_bytes, allocated_bytes, reserved_bytes;
    struct alloc_pool_id pool;
    bool other;    /* a context's or a library's request, not PyTorch's */
    bool caught;   /* the recording continues after it */
    bool recorded; /* it failed in the recording, too */
};

struct replay_device {
    bool used;
    uint64_t capacity_bytes;
    uint64_t peak_allocated_bytes, peak_reserved_bytes;
    uint64_t peak_used_bytes; /* with other_bytes and other memory */
    uint64_t peak_index;      /* the step that reached it first */
    uint64_t allocated_index; /* likewise, peak_allocated_bytes */
    struct alloc_stats stats; /* at the end */
    struct replay_oom *ooms;
    size_t oom_count, oom_capacity;
};

struct replay_result {
    struct replay_device devices[REPLAY_DEVICES];
    uint64_t steps;
    bool fits;           /* no request failed, except caught ones */
    bool changed_course; /* a request that had failed succeeded: the program
                            would not do what follows in the recording */
    bool ends_at_oom;    /* and nothing follows */
    uint64_t plans_changed;   /* convolutions that got no workspace */
    uint64_t plan_bytes_most; /* the largest of those */
    uint64_t sizes_unknown;   /* workspaces whose sizes are not certain */
    const struct alloc *engines[REPLAY_DEVICES]; /* during `visit` only */
};

/* Inspects a replay's engines after the step STOP or at the end. RESULT has
 * the engines during VISIT. */
struct replay_look {
    uint64_t stop; /* UINT64_MAX: the end */
    void (*visit)(void *context, const struct replay_result *result);
    void *context;
};

/* Replays SOURCE on devices with CONFIG's memory. It ends at the first request
 * that fails but did not fail in the recording (the program would have ended
 * there), where LOOK (may be NULL) stops it, or at the end of the recording.
 * Returns 0 or -1. Call replay_result_fini only after 0. */
int replay_run(const struct replay_source *source,
               const struct replay_config *config,
               const struct replay_plan *plan, const struct replay_look *look,
               struct replay_result *result, struct err *err);
void replay_result_fini(struct replay_result *result);

/* A snapshot as a source. `snapshot` is borrowed. */
struct replay_snapshot {
    const struct snapshot *snapshot;
    const char *name;
    struct snapshot initial;
    struct snapshot_order order;
    uint64_t index; /* events that it has given */
    bool complete; /* it begins with an empty allocator */
    struct replay_source source;
};

/* Makes R->source play SNAPSHOT, whose blocks CONF rounded. 0 or -1. */
int replay_snapshot_open(struct replay_snapshot *r,
                         const struct snapshot *snapshot,
                         const struct alloc_conf *conf, const char *name,
                         struct err *err);
void replay_snapshot_close(struct replay_snapshot *r);

/* A memsim trace as a source; its path is borrowed. */
struct replay_trace;

/* How a recording ends. */
enum replay_ending {
    REPLAY_WHOLE,   /* its process exited with status 0 */
    REPLAY_FAILED,  /* its process exited with another status */
    REPLAY_KILLED,  /* it has no END: its process was killed */
    REPLAY_LIMITED, /* the disk was full, or --trace-limit was reached */
};

/* The trace's data about its process; texts that it does not have are "". */
struct replay_trace_info {
    enum replay_ending ending;
    unsigned status; /* REPLAY_FAILED */
    unsigned rank;
    char program[64];
    char torch_version[32];
    char framework[32]; /* as sitecustomize.py names it; "": not known */
    char places[16 << 10]; /* calls that advice changes, as places.py writes
                              them in JSON; likewise */
    char alloc_conf[512];
    char gpu[32]; /* the last device's GPU */
    struct {
        bool used;
        unsigned card; /* the session's number */
        uint64_t capacity_bytes;
    } devices[REPLAY_DEVICES];
};

/* The most steps that are kept in memory, about 100 bytes each. A trace with
 * more is read again for each replay. */
#define REPLAY_STEPS 1000000

/* Creates the source of the trace PATH. One pass of its listener over the trace
 * fills it and *INFO. Close it after use. LIMIT: as REPLAY_STEPS. */
struct replay_trace *replay_trace_create(const char *path, size_t limit,
                                         struct replay_trace_info *info);
struct trace_listener replay_trace_listener(struct replay_trace *t);

/* The steps in memory (during the pass: those so far); NULL: not kept. */
const struct replay_op *replay_trace_steps(const struct replay_trace *t,
                                           size_t *count);

/* Creates the source and reads the trace; *INFO is filled. NULL with ERR set if
 * it cannot be read. */
struct replay_trace *replay_trace_open(const char *path,
                                       struct replay_trace_info *info,
                                       struct err *err);
const struct replay_source *replay_trace_source(const struct replay_trace *t);

/* From now on contexts and libraries have the sizes that they have on GPU
 * (borrowed), and the blocks that PyTorch gives cuBLAS as workspace have
 * WORKSPACE_BYTES. Returns the number of these blocks. */
size_t replay_trace_set_card(struct replay_trace *t, const struct gpu *gpu,
                             uint64_t workspace_bytes);
void replay_trace_close(struct replay_trace *t);

#endif
