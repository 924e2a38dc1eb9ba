/* SPDX-License-Identifier: Apache-2.0
 * What a real run taught of a GPU: `memsim diff --truth --save-corrections'
 * writes it, `memsim run --corrections' uses it. */
#ifndef MEMSIM_MEMSIM_STUDY_CORRECTIONS_H
#define MEMSIM_MEMSIM_STUDY_CORRECTIONS_H

#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "kernels/work.h"

#define CORRECTIONS_WORKSPACES   64
#define CORRECTIONS_CONVOLUTIONS 2048

/* A block that a library asks for: its size in the estimate, and on the GPU,
 * which is 0 where none is asked for there. */
struct corrected_workspace {
    uint64_t estimate_bytes, run_bytes;
};

/* What cuDNN asks for on the GPU, by the convolution. */
struct corrected_convolution {
    uint64_t operation; /* of the record, as TEXT (convolution_key.h) */
    char *text;
    uint64_t run_bytes;
};

struct fit_trace;

struct corrections {
    char gpu[sizeof((struct gpu *)0)->name];
    uint64_t context_bytes;
    int64_t libraries_more_bytes; /* than was estimated; negative: less */
    double scale[WORK_FAMILIES]; /* of times that the fit has not; 0: not known
                                  */
    struct corrected_workspace workspaces[CORRECTIONS_WORKSPACES];
    uint32_t workspace_count;
    struct corrected_convolution *convolutions;
    uint32_t convolution_count;
    struct fit_trace *fit; /* borrowed, to be written: the file is a fit, too */
};

/* Writes C to the file PATH; reads it. Return 0, or -1 with ERR set. */
int corrections_write(const struct corrections *c, const char *path,
                      struct err *err);
int corrections_read(struct corrections *c, const char *path, struct err *err);

/* Of what was read, or of zeros with convolutions that were added. */
void corrections_fini(struct corrections *c);

/* Adds a convolution; no more than CORRECTIONS_CONVOLUTIONS are kept. */
void corrections_add(struct corrections *c, uint64_t operation,
                     const char *text, uint64_t run_bytes);

/* GPU, which C has to be of, gets what C says of its memory. Returns 0 or -1.
 */
int corrections_apply(const struct corrections *c, struct gpu *gpu,
                      struct err *err);

/* The workspaces as "#KEY=RUN,ESTIMATE=RUN,..." (core/work/library_call.h), as
 * a heap text; NULL: none. */
char *corrections_workspaces(const struct corrections *c);

/* The value of --scale that C stands for, as a heap text; NULL: none. */
char *corrections_scale(const struct corrections *c);

#endif
