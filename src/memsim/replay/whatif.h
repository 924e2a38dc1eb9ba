/* SPDX-License-Identifier: Apache-2.0
 * Finds whether a recorded job would fit with other settings or other memory.
 * Each answer comes from a replay. */
#ifndef MEMSIM_MEMSIM_REPLAY_WHATIF_H
#define MEMSIM_MEMSIM_REPLAY_WHATIF_H

#include "memsim/replay/fragments.h"
#include "memsim/replay/replay.h"

/* One replay's outcome. */
struct whatif_row {
    char *conf;   /* as in PYTORCH_CUDA_ALLOC_CONF; "" for the defaults */
    bool advised; /* memsim suggests it; the user did not ask for it */
    struct replay_result result;
};

enum whatif_outcome {
    WHATIF_FITS,
    WHATIF_OOM,
    WHATIF_UNKNOWN, /* the replayed part fits, but the recording is not the
                       whole job: it ends early, or it continued after an
                       out-of-memory error that this replay does not have */
};

struct whatif {
    enum replay_ending ending; /* of the recording */
    const struct replay_source *source;
    const struct replay_plan *plan;
    struct replay_config config; /* its conf is replaced by each row's */
    struct whatif_row *rows;
    size_t row_count, row_capacity;
    unsigned device; /* the device of `fragments` */
    bool at_oom;     /* `fragments` is at the OOM, else at the peak */
    uint64_t oom_index; /* after this step; UINT64_MAX: the replay ends there */
    struct fragments fragments;
    uint64_t smallest_bytes; /* found by whatif_sweep; 0: none fits */
    bool smallest_is_least;  /* the job may need more */
    uint64_t needs_bytes;    /* found by whatif_least */
};

/* Replays the recording with CONF and adds a row. The first row also fills
 * `fragments`, for the device that is fullest or out of memory. Returns 0 or
 * -1. */
int whatif_add(struct whatif *w, const char *conf, bool advised,
               struct err *err);

/* Adds rows for settings that are known to reduce fragmentation and that the
 * PyTorch version supports. */
int whatif_advise(struct whatif *w, struct err *err);

enum whatif_outcome whatif_outcome(const struct whatif *w,
                                   const struct replay_result *result);

/* Finds the smallest memory from LEAST to MOST bytes in which the recording
 * fits with CONF, to 2 MiB. If the outcome is not known there, the job may need
 * more than the result (`smallest_is_least`). */
int whatif_sweep(struct whatif *w, const char *conf, uint64_t least,
                 uint64_t most, struct err *err);

/* Finds the least memory that the job needs (`needs_bytes`) if the first row's
 * outcome is not known. RECORDED_BYTES: the memory of the recording's GPU. */
int whatif_least(struct whatif *w, uint64_t recorded_bytes, struct err *err);

/* The I-th setting that whatif_advise tries; NULL: no more. */
const char *whatif_candidate(size_t i);

/* The best advised row: one that fits if the first does not, or one that uses
 * at least 2% less memory. NULL: none. */
const struct whatif_row *whatif_best(const struct whatif *w);

/* The highest peak used bytes of any device. */
uint64_t whatif_peak_used(const struct replay_result *result);

void whatif_fini(struct whatif *w);

#endif
