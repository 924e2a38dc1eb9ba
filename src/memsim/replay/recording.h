/* SPDX-License-Identifier: Apache-2.0
 * What `memsim replay` was given, ready to be asked: a trace or a snapshot,
 * proved against itself. */
#ifndef MEMSIM_MEMSIM_RECORDING_H
#define MEMSIM_MEMSIM_RECORDING_H

#include "common/catalogue/gpu.h"
#include "memsim/replay/whatif.h"

struct recording_options {
    const char *torch;     /* NULL: what the recording says */
    const struct gpu *gpu; /* NULL: the recording's GPU; outlives it */
    uint64_t memory_bytes; /* 0: the GPU's */
    enum vaspace_model addresses;
};

struct recording {
    char *path;
    struct replay_trace *trace; /* or, where NULL, */
    bool borrows_trace;
    struct snapshot snapshot;
    struct replay_snapshot snapshot_source;
    struct replay_trace_info info;
    struct replay_plan plan;
    struct whatif whatif;
    bool torch_assumed;       /* the recording does not say */
    bool torch_known;         /* it has a row of its own in the rules */
    bool kernels_differ;      /* PyTorch has others on the GPU asked for */
    uint64_t workspace_bytes; /* what cuBLAS gets on the GPU asked for; 0: it
                                 gets nothing, or no other GPU was asked for */
};

/* Opens PATH and plays it as it was. Returns 0, or -1 with nothing to
 * close. */
int recording_open(struct recording *r, const char *path,
                   const struct recording_options *options, struct err *err);
/* The same of a TRACE that was filled already, with INFO; it is borrowed. */
int recording_open_trace(struct recording *r, const char *path,
                         struct replay_trace *trace,
                         const struct replay_trace_info *info,
                         const struct recording_options *options,
                         struct err *err);
void recording_close(struct recording *r);

/* Did the process use a GPU? */
bool recording_is_used(const struct recording *r);

/* The memory of the largest GPU it was recorded on; 0: it does not say. */
uint64_t recording_capacity(const struct recording *r);

/* Plays R under CONF and writes a snapshot of it, whose segments are those at
 * the end, to PATH, which PyTorch's memory_viz page can open. Returns 0 or
 * -1. */
int recording_write_snapshot(const struct recording *r, const char *conf,
                             const char *path, struct err *err);

#endif
