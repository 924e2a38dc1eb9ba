/* SPDX-License-Identifier: Apache-2.0
 * Recorded allocator calls, played to the allocator engine: as they were, to
 * prove that the engine does what the recording says, and as they would have
 * been with other memory or settings.
 *
 * Pure but for the source, which may read a file. */
#ifndef MEMSIM_MEMSIM_REPLAY_H
#define MEMSIM_MEMSIM_REPLAY_H

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
    REPLAY_ALLOC,       /* a block handed out */
    REPLAY_OOM,         /* a request that failed */
    REPLAY_FREE,        /* a block given back */
    REPLAY_FREE_DONE,   /* the streams are done with a deferred one */
    REPLAY_SEGMENT,     /* what the allocator did below; action says */
    REPLAY_REFUSED,     /* the device had no memory for it */
    REPLAY_OTHER_ALLOC, /* memory that is not the allocator's; without an
                           address, a context's or a library's */
    REPLAY_OTHER_FREE,
    REPLAY_RESET,    /* the device's context ended, with all memory */
    REPLAY_FRACTION, /* the program limited itself to that much of the GPU */
    REPLAY_SETTINGS, /* it gave the allocators of all devices settings */
    REPLAY_KINDS
};

/* One step of a recording. `address` is the recorded one: the block's name. */
struct replay_op {
    enum replay_kind kind;
    enum alloc_action action;
    unsigned device;
    bool deferred;  /* REPLAY_FREE: done only at a REPLAY_FREE_DONE */
    uint64_t index; /* in the recording, for messages */
    uint64_t address, bytes, stream, time_ns;
    struct alloc_pool_id pool;
    double fraction;
    const char *settings; /* as long as the source is open */
    uint64_t plan; /* REPLAY_ALLOC: the convolution whose workspace it is.
                      PyTorch catches its failing, takes a plan without one and
                      stays with that. 0: no convolution's */
};

struct replay_source {
    void *context;
    const char *name;
    /* Sets *OP to the next step; 1, or 0 at the end, -1 with ERR set. */
    int (*next)(void *context, struct replay_op *op, struct err *err);
    /* Back to the first step. 0 or -1. */
    int (*rewind)(void *context, struct err *err);
    bool tells_refusals; /* by REPLAY_REFUSED, each */
    /* What the devices held before the first step, by device; NULL: nothing. */
    const struct snapshot *initial;
};

/* Told of each event of a replayed device, with the time of its step. */
typedef void replay_listener(void *context, unsigned device, uint64_t time_ns,
                             const struct alloc_event *event);

/* What a replayed device stands at after a step. */
struct replay_moment {
    unsigned device;
    uint64_t index, time_ns; /* of the step */
    uint64_t allocated_bytes, reserved_bytes, used_bytes;
};

typedef void replay_watcher(void *context, const struct replay_moment *now);

struct replay_config {
    const struct alloc_rules *rules;
    struct alloc_conf conf;
    uint64_t total_bytes; /* the GPU's memory, as properties tell it */
    uint64_t other_bytes; /* of it, what is taken before the first step */
    enum vaspace_model addresses;
    replay_listener *listener; /* of replay_run; may be NULL */
    replay_watcher *watcher;   /* likewise; of the same context */
    void *listener_context;
};

/* What a recording shows but does not say: calls of empty_cache(), and private
 * pools that were given up. Found by replay_mirror. */
struct replay_deed {
    uint64_t index; /* before the step of that index */
    unsigned device;
    bool is_flush;             /* else: the pool lost its last user */
    struct alloc_pool_id pool; /* of a flush: the only one emptied, or {0, 0} */
};

struct replay_plan { /* zeroed: empty */
    struct replay_deed *deeds;
    size_t count, capacity;
    uint64_t steps;
    uint64_t blocks_checked; /* at their recorded address */
    bool exact;              /* all of them, and all segments */
    uint64_t peak_reserved_bytes[REPLAY_DEVICES];
    struct alloc_stats stats[REPLAY_DEVICES]; /* at the end */
    char difference[256];                     /* the first, where not */
};

/* Plays SOURCE with the device answering as recorded, and compares: every
 * block's address, every segment taken and given back. Returns 0 with *PLAN
 * filled, also where they differ; -1 where the recording is impossible. */
int replay_mirror(const struct replay_source *source,
                  const struct replay_config *config, struct replay_plan *plan,
                  struct err *err);
void replay_plan_fini(struct replay_plan *plan);

struct replay_oom {
    uint64_t index, time_ns;
    uint64_t requested_bytes, stream;
    uint64_t refused_bytes; /* what was asked of the device */
    uint64_t free_bytes, allocated_bytes, reserved_bytes;
    struct alloc_pool_id pool;
    bool other;    /* a context's or a library's request, not PyTorch's */
    bool caught;   /* the recording goes on after it */
    bool recorded; /* it failed in the recording, too */
};

struct replay_device {
    bool used;
    uint64_t capacity_bytes;
    uint64_t peak_allocated_bytes, peak_reserved_bytes;
    uint64_t peak_used_bytes; /* with other_bytes and others' memory */
    uint64_t peak_index;      /* the step that reached it first */
    struct alloc_stats stats; /* at the end */
    struct replay_oom *ooms;
    size_t oom_count, oom_capacity;
};

struct replay_result {
    struct replay_device devices[REPLAY_DEVICES];
    uint64_t steps;
    bool fits;           /* no request failed but those caught */
    bool changed_course; /* a request that had failed did not: what follows in
                            the recording is not what the program would do */
    bool ends_at_oom;    /* and nothing follows */
    uint64_t plans_changed;   /* convolutions that got no workspace */
    uint64_t plan_bytes_most; /* the largest of those */
    const struct alloc *engines[REPLAY_DEVICES]; /* during `visit` only */
};

/* A look at a replay's engines, at the step it is to stop after or at its end.
 * RESULT has them then. */
struct replay_look {
    uint64_t stop; /* UINT64_MAX: the end */
    void (*visit)(void *context, const struct replay_result *result);
    void *context;
};

/* Plays SOURCE on devices of CONFIG's memory. It ends at the first request
 * that fails where the recording's did not (the program would have died
 * there), where LOOK (may be NULL) stops it, or at the end of the recording.
 * Returns 0 or -1; *RESULT is to be replay_result_fini'ed only after 0. */
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
    unsigned device;
    size_t at;
    uint64_t index;
    bool complete; /* it begins with an empty allocator */
    struct replay_source source;
};

/* Makes R->source play SNAPSHOT, whose blocks CONF rounded. 0 or -1. */
int replay_snapshot_open(struct replay_snapshot *r,
                         const struct snapshot *snapshot,
                         const struct alloc_conf *conf, const char *name,
                         struct err *err);
void replay_snapshot_close(struct replay_snapshot *r);

/* A trace of ours as a source; its path is borrowed. */
struct replay_trace;

/* How a recording ends. */
enum replay_ending {
    REPLAY_WHOLE,   /* with its process, which exited with status 0 */
    REPLAY_FAILED,  /* ... with another status */
    REPLAY_KILLED,  /* without an END: its process was killed */
    REPLAY_LIMITED, /* the disk was full, or --trace-limit was reached */
};

/* What the trace says of its process; texts are "" where it says nothing. */
struct replay_trace_info {
    enum replay_ending ending;
    unsigned status; /* REPLAY_FAILED */
    unsigned rank;
    char program[64];
    char torch_version[32];
    char alloc_conf[512];
    char gpu[32]; /* the last device's GPU */
    struct {
        bool used;
        unsigned card; /* the session's number */
        uint64_t capacity_bytes;
    } devices[REPLAY_DEVICES];
};

/* How many steps are kept in memory, of some 100 bytes; a trace with more is
 * read again for each replay. */
#define REPLAY_STEPS 1000000

/* The trace PATH, to be filled by one pass of its listener over it, which fills
 * *INFO too, and closed. LIMIT: as REPLAY_STEPS. */
struct replay_trace *replay_trace_create(const char *path, size_t limit,
                                         struct replay_trace_info *info);
struct trace_listener replay_trace_listener(struct replay_trace *t);

/* The steps in memory, so far where the pass goes on; NULL: they are not. */
const struct replay_op *replay_trace_steps(const struct replay_trace *t,
                                           size_t *count);

/* The same with a pass of its own; NULL with ERR set where it cannot be read.
 * *INFO is filled. */
struct replay_trace *replay_trace_open(const char *path,
                                       struct replay_trace_info *info,
                                       struct err *err);
const struct replay_source *replay_trace_source(const struct replay_trace *t);

/* From now on contexts and libraries take what they take of GPU (borrowed), and
 * the blocks that PyTorch lends cuBLAS have WORKSPACE_BYTES. Returns how many
 * there are of them. */
size_t replay_trace_set_card(struct replay_trace *t, const struct gpu *gpu,
                             uint64_t workspace_bytes);
void replay_trace_close(struct replay_trace *t);

#endif
