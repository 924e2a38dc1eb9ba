/* SPDX-License-Identifier: Apache-2.0
 * Questions to a recording: under these settings, on that much memory, would
 * it have fitted? Each answer is a replay. */
#ifndef MEMSIM_MEMSIM_WHATIF_H
#define MEMSIM_MEMSIM_WHATIF_H

#include "memsim/replay/fragments.h"
#include "memsim/replay/replay.h"

/* One replay's outcome. */
struct whatif_row {
    char *conf;   /* as in PYTORCH_CUDA_ALLOC_CONF; "" for the defaults */
    bool advised; /* it was our idea */
    struct replay_result result;
};

enum whatif_outcome {
    WHATIF_FITS,
    WHATIF_OOM,
    WHATIF_UNKNOWN, /* what was played fits, but the recording is not the whole
                       job: it ends early, or went on after an out-of-memory
                       error that this replay has not */
};

struct whatif {
    enum replay_ending ending; /* of the recording */
    const struct replay_source *source;
    const struct replay_plan *plan;
    struct replay_config config; /* its conf is replaced by each row's */
    struct whatif_row *rows;
    size_t row_count, row_capacity;
    unsigned device; /* what `fragments` is about */
    bool at_oom;     /* else at the peak */
    struct fragments fragments;
    uint64_t smallest_bytes; /* found by whatif_sweep; 0: none fits */
    bool smallest_is_least;  /* the job may need more */
    uint64_t needs_bytes;    /* found by whatif_least */
};

/* Plays the recording under CONF and adds a row. The first row's device that
 * is fullest, or out of memory, is looked at closely (`fragments`). Returns 0
 * or -1. */
int whatif_add(struct whatif *w, const char *conf, bool advised,
               struct err *err);

/* Adds rows for settings known to help against fragmentation, those that the
 * version knows. */
int whatif_advise(struct whatif *w, struct err *err);

enum whatif_outcome whatif_outcome(const struct whatif *w,
                                   const struct replay_result *result);

/* Finds the least memory from LEAST to MOST bytes that the recording fits in
 * under CONF, to 2 MiB; where its outcome is not known there, as far as it
 * goes (`smallest_is_least`). */
int whatif_sweep(struct whatif *w, const char *conf, uint64_t least,
                 uint64_t most, struct err *err);

/* Finds what the job needs at least (`needs_bytes`), where the first row's
 * outcome is not known. RECORDED_BYTES: the memory of the recording's GPU. */
int whatif_least(struct whatif *w, uint64_t recorded_bytes, struct err *err);

/* The setting number I of those that whatif_advise tries; NULL: no more. */
const char *whatif_candidate(size_t i);

/* The advised row that serves best: one that fits where the first does not, or
 * uses at least 2% less memory. NULL: none. */
const struct whatif_row *whatif_best(const struct whatif *w);

/* The most used of any device. */
uint64_t whatif_peak_used(const struct replay_result *result);

void whatif_fini(struct whatif *w);

#endif
