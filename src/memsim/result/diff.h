/* SPDX-License-Identifier: Apache-2.0
 * What changed between two runs: the peaks of every GPU that both used, and
 * what lay there at the peak, by category and by module. Pure. */
#ifndef MEMSIM_MEMSIM_RESULT_DIFF_H
#define MEMSIM_MEMSIM_RESULT_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"
#include "memsim/result/result.h"

/* A figure in the run before and the run after. */
struct diff_pair {
    uint64_t before, after;
};

/* A module of either run. */
struct diff_module {
    const char *name;      /* as the run after calls it, where it is there */
    size_t parent;         /* index in the array, SIZE_MAX: none */
    bool was, is;          /* there in the run before, after */
    struct diff_pair held; /* at the peak, with all below it */
    struct diff_pair self; /* at the peak, by itself */
    uint64_t moved_bytes;  /* by which it and all below it grew and shrank */
};

/* A GPU that both runs used. */
struct diff_device {
    unsigned rank, index;
    struct diff_pair allocated, reserved, used, headroom; /* peaks */
    bool attributed; /* both say whose memory it is; else nothing follows */
    struct diff_pair categories[TRACE_CATEGORY_COUNT];
    struct diff_pair outside; /* no module's */
    struct diff_module *modules;
    size_t module_count;
};

struct diff {
    const struct result *before, *after; /* borrowed, as all names are */
    struct diff_device *devices;         /* by rank and index */
    size_t device_count;
    size_t before_alone, after_alone; /* GPUs that one run used only */
};

/* How much growth is too much: so many bytes, or per cent. */
struct diff_limit {
    bool given, relative;
    uint64_t bytes;
    double percent;
};

/* What grew too much. */
struct diff_excess {
    bool worse; /* the run after failed, or lacks memory as the one before did
                   not: its peaks are not known */
    const struct diff_device *device; /* else, the GPU */
    const char *figure;               /* "peak allocated", "peak used" */
    struct diff_pair bytes;
};

/* The part of the model that grew most. */
struct diff_culprit {
    const char *name; /* NULL: nothing that PyTorch allocated grew */
    bool itself;      /* not what is below it */
    struct diff_pair bytes;
};

void diff_make(struct diff *diff, const struct result *before,
               const struct result *after);
void diff_fini(struct diff *diff);

/* Reads "2%", "512MiB" or "0". Returns 0, or -1 with ERR set. */
int diff_limit_parse(const char *text, struct diff_limit *limit,
                     struct err *err);

/* Whether DIFF goes past LIMIT; the GPU whose peak grew most is the one
 * told. */
bool diff_is_past(const struct diff *diff, const struct diff_limit *limit,
                  struct diff_excess *excess);

/* Goes down from the model to its part that most of the growth is in. */
struct diff_culprit diff_culprit_find(const struct diff_device *device);

/* Whether B is told with A: other ranks' GPUs that came to the same. */
bool diff_devices_alike(const struct diff_device *a,
                        const struct diff_device *b);

/* How far P moved, up or down. */
static inline uint64_t diff_distance(const struct diff_pair *p)
{
    return p->after > p->before ? p->after - p->before : p->before - p->after;
}

#endif
