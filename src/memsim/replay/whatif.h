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

struct whatif {
    const struct replay_source *source;
    const struct replay_plan *plan;
    struct replay_config config; /* its conf is replaced by each row's */
    struct whatif_row *rows;
    size_t row_count, row_capacity;
    unsigned device; /* what `fragments` is about */
    bool at_oom;     /* else at the peak */
    struct fragments fragments;
    uint64_t smallest_bytes; /* found by whatif_sweep; 0: none fits */
};

/* Plays the recording under CONF and adds a row. The first row's device that
 * is fullest, or out of memory, is looked at closely (`fragments`). Returns 0
 * or -1. */
int whatif_add(struct whatif *w, const char *conf, bool advised,
               struct err *err);

/* Adds rows for settings known to help against fragmentation, those that the
 * version knows. */
int whatif_advise(struct whatif *w, struct err *err);

/* Finds the least memory from LEAST to MOST bytes that the recording fits in
 * under CONF, to 2 MiB. */
int whatif_sweep(struct whatif *w, const char *conf, uint64_t least,
                 uint64_t most, struct err *err);

/* The setting number I of those that whatif_advise tries; NULL: no more. */
const char *whatif_candidate(size_t i);

/* The advised row that serves best: one that fits where the first does not, or
 * uses at least 2% less memory. NULL: none. */
const struct whatif_row *whatif_best(const struct whatif *w);

/* The most used of any device. */
uint64_t whatif_peak_used(const struct replay_result *result);

void whatif_fini(struct whatif *w);

#endif
