/* SPDX-License-Identifier: Apache-2.0
 * The shapes of a PyTorch operator, as a profiler's trace has them. */
#ifndef MEMSIM_FITTING_TRACE_SHAPE_H
#define MEMSIM_FITTING_TRACE_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/work.h"

#define TRACE_TENSORS    16
#define TRACE_DIMENSIONS 8

struct trace_tensor {
    uint64_t sizes[TRACE_DIMENSIONS];
    unsigned dimensions; /* 0: a scalar, or no tensor */
    unsigned element_bytes;
    char type[24]; /* "c10::Half"; "": a scalar, or no tensor */
    double elements;
    uint64_t strides[TRACE_DIMENSIONS]; /* 0 where they are not told */
};

struct trace_tensors {
    struct trace_tensor all[TRACE_TENSORS];
    size_t count;
};

/* Reads the lists of an operator's sizes, types and strides, as kineto_event
 * has them; STRIDES may be NULL. False where they are not such lists. */
bool trace_tensors_read(struct trace_tensors *t, const char *dims,
                        const char *types, const char *strides);

/* Is the operator NAME a product of matrices? */
bool trace_is_product(const char *name);

/* Makes WORK the product that the operator NAME computes with KERNEL. False
 * where the tensors are not those of one. */
bool trace_describe_product(const char *name, const char *kernel,
                            const struct trace_tensors *t, struct work *work);

/* Completes WORK, of a kernel that goes once through the tensors: elementwise,
 * norms, softmax, reductions. False where its family does not. */
bool trace_describe_bytes(const struct trace_tensors *t, struct work *work);

#endif
