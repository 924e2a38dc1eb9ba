/* SPDX-License-Identifier: Apache-2.0
 * The catalogue of kernels: one row a kernel (kernel_rows*.c), found once for
 * each name. Its columns answer different folders: the work and its family
 * (work.h), what the arguments say (arguments), who carries it out on the host
 * (host), and what users call it (kernel_words.h). Pure. */
#ifndef MEMSIM_KERNELS_KERNEL_H
#define MEMSIM_KERNELS_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/work.h"

/* What a launch's arguments say of its work. A launch's reader has one function
 * for each (capture/core/work/kernel_rules.c); the count that comes with it is
 * that of struct work_kernel. */
enum kernel_arguments {
    KERNEL_ARGUMENTS_NONE,
    KERNEL_ARGUMENTS_SIZES,     /* integers and tensors' sizes among them */
    KERNEL_ARGUMENTS_LOOP,      /* elements of count tensors */
    KERNEL_ARGUMENTS_CASTS,     /* the same, whose types they tell */
    KERNEL_ARGUMENTS_STRIDED,   /* elements, and how each tensor is walked */
    KERNEL_ARGUMENTS_REDUCTION, /* struct ReduceOp */
    KERNEL_ARGUMENTS_LISTS,     /* count lists of tensors */
    KERNEL_ARGUMENTS_LISTS_STEPS,
    KERNEL_ARGUMENTS_LISTS_SCALARS,
    KERNEL_ARGUMENTS_LISTS_FOREIGN, /* those of Apex and Transformer Engine */
    KERNEL_ARGUMENTS_CAT,           /* at most count inputs */
    KERNEL_ARGUMENTS_FLASH,
    KERNEL_ARGUMENTS_EFFICIENT_FORWARD,
    KERNEL_ARGUMENTS_EFFICIENT_BACKWARD,
    KERNEL_ARGUMENTS,
};

/* The computation on the host that stands for a kernel: capture/core/compute/
 * compute.c has the functions of each, and says what they need of the name. */
#define KERNEL_HOST_LIST(X)                                                    \
    X(NONE)                                                                    \
    X(LOOP) X(UNROLLED) X(STRIDED) X(OUTPUTS) X(RANGE) X(RANDOM)               \
    X(TRIANGLE) X(CAT) X(FOREACH) X(REDUCE) X(LOSS_2D) X(GATHER_ROWS)          \
    X(SELECT_LARGE) X(SELECT_SMALL) X(INDEX_ADD_LARGE) X(INDEX_ADD_SMALL)      \
    X(INDEX_PUT) X(INDEX) X(SCATTER) X(SORT_PASS) X(SORT_TILE) X(SCAN)         \
    X(UNIQUE_BY_KEY) X(SORT_ROWS) X(ROW_NUMBERS) X(TOPK) X(LOSS) X(LOSS_1D)    \
    X(COUNT) X(TOTAL) X(SELECT) X(RUNS) X(MERGE_SORT) X(ADJACENT)              \
    X(TRANSFORM) X(FOR_EACH) X(PLACES) X(FLAG) X(FILL_REST) X(DIFFERENCE)      \
    X(INVERSE) X(UNIQUE_BOOL) X(INVERSE_BOOL) X(REPEAT) X(LOSS_IMAGE)          \
    X(SCAN_ROWS) X(SCAN_COLUMNS) X(EXTREMES_ROWS) X(EXTREMES_COLUMNS)          \
    X(HISTOGRAM) X(KTH) X(MEDIAN) X(MODE) X(SAMPLE) X(UNFOLD_BACKWARD)         \
    X(ROLL) X(SEARCH) X(POINTWISE) X(CROSS) X(AMP_UPDATE)                      \
    X(TRIANGLE_INDICES) X(TO_COMPRESSED) X(FROM_COMPRESSED) X(COALESCE)        \
    X(SPARSE_ADD) X(REDUCE_JITTED) X(DIVISOR) X(CHANGES) X(FIND)               \
    X(UNIQUE_AGENT) X(COUNTS) X(MOST) X(FOUND_COPY)                            \
    X(JITTED) X(COLLECTIVE)

#define KERNEL_HOST_ID(id) KERNEL_HOST_##id,
enum kernel_host { KERNEL_HOST_LIST(KERNEL_HOST_ID) KERNEL_HOSTS };
#undef KERNEL_HOST_ID

/* The host's computation of a kernel whose name has been read. */
enum kernel_host kernel_host(const struct work_kernel *kernel);

/* Whether its row says what work a launch is. */
bool kernel_is_described(const struct work_kernel *kernel);

/* The family of a kernel of which nothing but its name is known, mangled or as
 * a profiler shows it; WORK_OTHER where no row has it. */
enum work_family kernel_family(const struct work_kernel *kernel);

#endif
