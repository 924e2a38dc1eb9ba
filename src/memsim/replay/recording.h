/* SPDX-License-Identifier: Apache-2.0
 * The input of `memsim replay`, a trace or a snapshot, ready to be replayed
 * with other settings. Opening it compares a replay with the recording. */
#ifndef MEMSIM_MEMSIM_REPLAY_RECORDING_H
#define MEMSIM_MEMSIM_REPLAY_RECORDING_H

#include "common/catalogue/gpu.h"
#include "memsim/replay/recording_frames.h"
#include "memsim/replay/whatif.h"

struct recording_options {
    const char *torch;     /* NULL: the recording's version */
    const struct gpu *gpu; /* NULL: the recording's GPU; outlives it */
    uint64_t memory_bytes; /* 0: the GPU's */
    bool modelled; /* ADDRESSES also where a snapshot's own could be had */
    enum vaspace_model addresses;
};

struct recording {
    char *path;
    struct replay_trace *trace; /* or, where NULL, */
    bool borrows_trace;
    const struct recording_frames *frames; /* borrowed; NULL: the trace is read
                                              for them */
    struct snapshot snapshot;
    struct replay_snapshot snapshot_source;
    struct replay_trace_info info;
    struct replay_plan plan;
    struct whatif whatif;
    bool torch_assumed;       /* the recording has no version */
    bool torch_known;         /* the version has its own row in the rules */
    bool kernels_differ;      /* PyTorch has others on the requested GPU */
    uint64_t workspace_bytes; /* cuBLAS's workspace on the requested GPU; 0: it
                                 has none, or no other GPU was requested */
};

/* Opens PATH and replays it unchanged. Returns 0, or -1 with nothing to
 * close. */
int recording_open(struct recording *r, const char *path,
                   const struct recording_options *options, struct err *err);
/* The same for a TRACE that is already filled, with INFO; it is borrowed. */
int recording_open_trace(struct recording *r, const char *path,
                         struct replay_trace *trace,
                         const struct replay_trace_info *info,
                         const struct recording_options *options,
                         struct err *err);
void recording_close(struct recording *r);

/* Whether the process used a GPU. */
bool recording_is_used(const struct recording *r);

/* The memory in bytes of the largest recorded GPU; 0: not recorded. */
uint64_t recording_capacity(const struct recording *r);

/* Replays R with the settings CONF and writes a snapshot to PATH, with the
 * segments at the end. PyTorch's memory_viz page can open it. Returns 0 or
 * -1. */
int recording_write_snapshot(const struct recording *r, const char *conf,
                             const char *path, struct err *err);

/* Who follows a replay: each event of the allocators, whose stack is a number
 * in FRAMES, then the state of the device after the step that it was of. */
struct recording_listener {
    void (*event)(void *context, unsigned device,
                  const struct snapshot_event *event,
                  const struct snapshot_frames *frames);
    replay_watcher *moment;
    void *context;
};

/* Replays R as in its first row. Returns 0 or -1. */
int recording_follow(const struct recording *r,
                     const struct recording_listener *listener,
                     struct err *err);

/* AT has the segments of that moment, and no events. */
typedef void recording_visit(void *context, const struct snapshot *at);

/* Replays R as in its first row and calls VISIT at the peak of the report's
 * device's allocated memory, or when memory runs out. Returns 0 or -1. */
int recording_blocks(const struct recording *r, recording_visit *visit,
                     void *context, struct err *err);

#endif
