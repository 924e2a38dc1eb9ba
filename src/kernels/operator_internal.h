/* SPDX-License-Identifier: Apache-2.0
 * For the files that describe kernels by operators, among themselves. */
#ifndef MEMSIM_KERNELS_OPERATOR_INTERNAL_H
#define MEMSIM_KERNELS_OPERATOR_INTERNAL_H

#include "kernels/kernel_row.h"
#include "kernels/operator.h"

/* The place of an argument that an operator does not have. */
#define NONE 255

/* Number I of CALL's argument AT, whose last one counts for the others; OTHER
 * where there is none, or where it is below 0. */
uint64_t operator_number(const struct operator_call *call, uint8_t at,
                         unsigned i, uint64_t other);

/* The row of ROWS, an array of structures that begin with their name, with
 * NAME; NULL: there is none. */
#define OPERATOR_ROW(rows, name)                                               \
    operator_row(rows, sizeof(rows) / sizeof *(rows), sizeof *(rows), name)
const void *operator_row(const void *rows, size_t count, size_t row_bytes,
                         const char *name);

/* A kernel by CALL, of which its own name does not say what its arguments are:
 * the work of the call's part, or that of a further kernel of it. */
bool operator_call_work(const struct operator_call *call,
                        struct operator_progress *progress,
                        const char *kernel, struct work *work);

/* Rows and columns that a kernel of ROW goes over in CALL. Returns false where
 * the call does not say. */
struct operator_extents {
    uint64_t rows, columns;
};
bool operator_extents(const struct operator_call *call,
                      const struct kernel_row *row,
                      struct operator_extents *extents);

/* Elements of CALL's tensors, put beside each other as PyTorch broadcasts
 * them; 0: it has none. */
double operator_elements(const struct operator_call *call);

/* The words of pooling and interpolation; false where CALL is none. */
bool operator_pool_words(const struct operator_call *call,
                         const struct kernel_row *row,
                         uint64_t words[TRACE_LAUNCH_WORDS]);

#endif
