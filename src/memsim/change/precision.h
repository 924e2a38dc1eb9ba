/* SPDX-License-Identifier: Apache-2.0
 * A recording in another precision, where PyTorch calls the same operations in
 * both: fp16 and bf16 have the same size and the same kernels, made for the
 * other type; TF32 is another mode of the fp32 products and convolutions. */
#ifndef MEMSIM_MEMSIM_CHANGE_PRECISION_H
#define MEMSIM_MEMSIM_CHANGE_PRECISION_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

struct precision_change {
    const char *from, *to; /* "fp16", "bf16", "fp32", "tf32" */
};

struct precision_report {
    size_t kernels; /* launches of kernels for the other type */
    size_t calls;   /* products, convolutions, attention, collectives */
    bool scaler;    /* a GradScaler is at work: it stays */
    bool profile;   /* times are as measured */
};

/* Writes the recording FROM in the other precision to TO, a new file. Returns
 * 0, or -1 with ERR set: it cannot be read or written, has nothing in that
 * precision, or would have other operations. */
int precision_change(const struct precision_change *change, const char *from,
                     const char *to, struct precision_report *report,
                     struct err *err);

#endif
