/* SPDX-License-Identifier: Apache-2.0
 * What cuFFT's files share. */
#ifndef MEMSIM_CAPTURE_CUFFT_CUFFT_FAKE_H
#define MEMSIM_CAPTURE_CUFFT_CUFFT_FAKE_H

#include <cufft.h>
#include <cufftXt.h>
#include <stdbool.h>
#include <stdint.h>

#define RANK_MAX 3

/* BATCH transforms of RANK dimensions, executed in TYPE. REAL: input or output
 * are real numbers. */
struct fft_shape {
    int rank;
    int64_t n[RANK_MAX], batch;
    cudaDataType type;
    bool real;
};

/* What a plan's number stands for. */
struct plan {
    int device, automatic;
    struct fft_shape shape;
    uint64_t stream, work_bytes, work; /* work: the area, where it is ours */
    long long properties[2];           /* by cufftProperty, from 1 on */
};

/* NULL for a number that is no plan's. */
struct plan *plan_get(cufftHandle handle);

/* What the work area of a transform takes; an error of SHAPE's otherwise. */
cufftResult shape_work(const struct fft_shape *shape, uint64_t *bytes);

/* Gives PLAN (which may be NULL) its shape and, if it is to have it by itself,
 * its work area. */
cufftResult plan_make(struct plan *plan, const struct fft_shape *shape,
                      size_t *bytes);

#endif
