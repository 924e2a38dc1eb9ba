/* SPDX-License-Identifier: Apache-2.0
 * What the cost models say of the operations of a profile, on its own GPU: how
 * their times follow from a size of the job. */
#ifndef MEMSIM_MEMSIM_STUDY_SIZE_PRICES_H
#define MEMSIM_MEMSIM_STUDY_SIZE_PRICES_H

#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/trace/op_trace.h"

/* Zeroed, it is empty. */
struct size_prices {
    struct gpu gpu;
    void *image; /* NULL: the catalogue does not have the GPU */
    struct pricer *pricer; /* which knows kernels by their names' numbers */
    const struct trace_names *names; /* these; borrowed */
};

/* Of the profile PATH. Returns 0, or -1 with ERR set; close it either way. */
int size_prices_open(struct size_prices *s, const char *path, struct err *err);
void size_prices_close(struct size_prices *s);

/* See sizes_price: CONTEXT is a struct size_prices. */
uint64_t size_prices_find(void *context, const struct op *op,
                          const struct trace_names *names);

#endif
