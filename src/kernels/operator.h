/* SPDX-License-Identifier: Apache-2.0
 * The work of a kernel by the operator of PyTorch that launched it, as a
 * profiler's trace describes both: the operator by its name, the sizes, types
 * and strides of its tensors and its other arguments; the kernel by name, grid
 * and block. What comes out are the words of a LAUNCH, which memsim's own
 * recordings have from the kernel's arguments. Pure.
 *
 *   aten::sum [[4096,768]]         reduce_kernel: inputs, outputs, stride
 *   aten::addmm                    nvjet_...: TRACE_RULE_WORK, a product
 *   aten::convolution_backward     nchwToNhwc, dgrad, nhwcToNchw, wgrad, ...:
 *                                  the first of each pass has the work of all;
 *                                  the others are parts of it */
#ifndef MEMSIM_KERNELS_OPERATOR_H
#define MEMSIM_KERNELS_OPERATOR_H

#include "kernels/work.h"

#define OPERATOR_ARGUMENTS  24
#define OPERATOR_DIMENSIONS 8
#define OPERATOR_NUMBERS    4

/* An argument: a tensor, a list of tensors, or what is neither. */
struct operator_argument {
    uint64_t sizes[OPERATOR_DIMENSIONS], strides[OPERATOR_DIMENSIONS];
    uint8_t dimensions;    /* 0: no tensor, or one without dimensions */
    uint8_t element_bytes; /* 0: no tensor of a known type */
    uint8_t type;          /* enum work_type of its elements */
    bool has_strides;
    double elements;                  /* of a list: of all; 0: no tensor */
    int64_t numbers[OPERATOR_NUMBERS]; /* of what is no tensor; True is 1 */
    uint8_t number_count;
    bool nonzero; /* the first of them, behind its point as well */
};

/* The parts of a call that have work of their own: a backward's gradients of
 * inputs and of weights. All others have one part. */
enum operator_pass {
    OPERATOR_PASS_FIRST,
    OPERATOR_PASS_SECOND,
    OPERATOR_PASSES,
};

/* An operator's call; its name is borrowed. */
struct operator_call {
    const char *name;
    struct operator_argument arguments[OPERATOR_ARGUMENTS];
    unsigned count;
};

/* What is known of a call's kernels so far; zeroed at first. */
struct operator_progress {
    bool names_filter; /* a kernel's name says that it is a weights' gradient */
    bool names_tf32;   /* ... that it takes fp32 as TF32 */
    bool computed; /* the first pass has had more than transposes */
    bool done[OPERATOR_PASSES]; /* a kernel has the pass's work */
};

/* Reads the texts of a profile's operator, as struct profile_event has them;
 * STRIDES and CONCRETE may be NULL. Returns false where they are no lists. */
bool operator_read(struct operator_call *call, const char *name,
                   const char *const texts[4]);

/* The places of the texts. */
enum { OPERATOR_DIMS, OPERATOR_TYPES, OPERATOR_STRIDES, OPERATOR_CONCRETE };

/* To be told the name of each kernel of a call before one is described. */
void operator_note(struct operator_progress *progress, const char *kernel);

/* Sets the rule and the words of LAUNCH, whose grid and block are set, a launch
 * of KERNEL by CALL, from the kernels of a call in their order. NAME is the
 * kernel's. Returns false where nothing is known: LAUNCH stays as it is. */
bool operator_describe(const struct operator_call *call,
                       struct operator_progress *progress,
                       const struct work_kernel *kernel, const char *name,
                       struct trace_launch *launch);

/* The same of a launch of which no operator is known: by its grid. */
bool operator_describe_grid(const struct work_kernel *kernel,
                            struct trace_launch *launch);

#endif
