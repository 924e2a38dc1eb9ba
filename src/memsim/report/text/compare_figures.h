/* SPDX-License-Identifier: Apache-2.0
 * The figures of a run that comparisons show. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_COMPARE_FIGURES_H
#define MEMSIM_MEMSIM_REPORT_TEXT_COMPARE_FIGURES_H

#include "common/catalogue/gpu.h"
#include "memsim/result/prices.h"
#include "memsim/result/result.h"

/* Of the fullest GPU of a run. Bytes. */
struct compare_figures {
    uint64_t used, reserved, allocated, capacity, headroom, context;
    uint64_t step_ns; /* 0: not known */
    double tokens;    /* a second, of the whole job; 0: not known */
    double mfu;       /* 0: not known */
    uint64_t gpus;    /* of the job */
    double gpu_hours, cost; /* of a number of tokens; 0: not known */
    struct capability_set code; /* of result */
    bool known;       /* a GPU was used */
    bool whole;       /* the peaks are those of the whole job */
};

/* For what a number of tokens takes. */
struct compare_terms {
    double tokens; /* 0: not asked for */
    const struct prices *prices; /* NULL: none */
};

/* R may be NULL. */
struct compare_figures compare_figures_of(const struct result *r,
                                          const struct compare_terms *terms);

/* The GPUs by memory; empty if they cannot be read. The caller frees `list`. */
struct compare_catalogue {
    struct gpu *list;
    size_t count;
};
struct compare_catalogue compare_catalogue_load(void);

/* The smallest GPU of C that runs the job, see gpu_need. NULL: none, or not
 * known. */
const char *compare_smallest_gpu(const struct compare_catalogue *c,
                                 const struct compare_figures *f);

#endif
