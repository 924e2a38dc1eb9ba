/* SPDX-License-Identifier: Apache-2.0
 * From measured operators to the models of one GPU. Each class of work (a
 * family, the types and variants that share a model) gets the candidate whose
 * error is least on shapes held out: a roofline with three numbers, three
 * segments, or boosted trees over the roofline. */
#ifndef MEMSIM_OPFIT_FIT_OPS_H
#define MEMSIM_OPFIT_FIT_OPS_H

#include <stdio.h>

#include "fitting/ops.h"
#include "runtime/cost/cost_image.h"

/* Errors on shapes that were held out, in per cent; negative: not tried. */
struct fit_errors {
    double mape[COST_KINDS]; /* of each candidate, shape groups held out */
    double median;           /* of the one chosen: of |error| */
    double bias;             /* ... of the signed error */
    double larger; /* MAPE above the 80th percentile, trained below the 70th */
    double larger_line; /* the same of the roofline alone */
    double plain;       /* MAPE of the GPU's bare limits: nothing fitted */
    size_t rows, groups;
};

struct ops_model {
    enum work_family family;
    uint32_t types, variants;
    enum cost_kind kind;
    enum cost_basis basis;
    void *state;
    size_t state_bytes;
    double low, high;
    struct fit_errors errors;
};

struct fit_ops {
    char gpu[32];
    struct cost_gpu limits;
    const struct ops *ops; /* borrowed */
    uint64_t seed;
    struct ops_model *models;
    size_t count, capacity;
};

/* Fits all classes of GPU that OPS has rows for. Rows of other GPUs serve the
 * classes that have too few of its own. */
void fit_ops_run(const struct ops *ops, const char *gpu,
                 const struct cost_gpu *limits, uint64_t seed,
                 struct fit_ops *fit);

/* Writes FIT as JSON. */
void fit_ops_write(const struct fit_ops *fit, FILE *out);

/* Prints the table of errors. */
void fit_ops_print(const struct fit_ops *fit, FILE *out);

void fit_ops_free(struct fit_ops *fit);

/* What a class is called: "gemm fp16 bf16", "attention_forward fp16 bf16
 * flash2". */
void ops_model_name(const struct ops_model *model, char *name, size_t size);

#endif
