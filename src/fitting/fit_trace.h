/* SPDX-License-Identifier: Apache-2.0
 * From the kernels of profiler traces to a fit of their GPU: the times of
 * launches and of products that recur, and by how much the GPU's models are off
 * for each family of work. */
#ifndef MEMSIM_FITTING_FIT_TRACE_H
#define MEMSIM_FITTING_FIT_TRACE_H

#include <stdio.h>

#include "fitting/trace_ops.h"
#include "runtime/cost/cost_image.h"

/* What was measured of one launch or one product. */
struct fit_measured {
    uint64_t key;
    size_t kernel; /* one of them */
    double ns;     /* the median */
    size_t count;
    bool spread; /* the times differ too much for one number */
};

/* Of a family whose work the shapes describe. */
struct fit_scaled {
    struct cost_scale scale; /* factor 0: none */
    size_t kernels;          /* launches of different name or grid */
};

/* A kernel's measured time over that which its grid says; the median. */
struct fit_name {
    uint32_t name;
    double factor;
};

struct fit_trace {
    const struct trace_ops *ops; /* borrowed */
    char gpu[32];                /* the catalogue's name */
    struct fit_measured *launches, *products;
    size_t launch_count, product_count;
    struct fit_scaled families[WORK_FAMILIES];
    struct fit_name *names;
    size_t name_count;
    uint32_t jobs; /* that the traces are of */
    void (*write_more)(const void *more, FILE *out); /* further members of the
                                                        file; NULL: none */
    const void *more;
};

/* Fits OPS, of the GPU with that name and LIMITS, whose models IMAGE has. */
void fit_trace_run(struct fit_trace *fit, const struct trace_ops *ops,
                   const char *gpu, const struct cost_gpu *limits,
                   const struct cost_image *image);
void fit_trace_fini(struct fit_trace *fit);

/* Writes FIT as JSON, as `run --fit' reads it. Its end is WRITE_MORE's. */
void fit_trace_write(const struct fit_trace *fit, FILE *out);

/* Prints how much there is in FIT. */
void fit_trace_print(const struct fit_trace *fit, FILE *out);

/* Prices the kernels of OPS by IMAGE, and prints for each family how far that
 * is from their times. */
void fit_trace_eval(const struct trace_ops *ops, const struct cost_gpu *limits,
                    const struct cost_image *image, FILE *out);

#endif
