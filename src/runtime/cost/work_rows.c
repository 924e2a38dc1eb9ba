/* SPDX-License-Identifier: Apache-2.0
 * Kernels that work on rows: reductions (Reduce.cuh), norms
 * (layer_norm_kernel.cu) and softmax (SoftMax.cu, PersistentSoftmax.cuh). */
#include "runtime/cost/work_internal.h"

/* ReduceOp<scalar, operation, index, result, ...> is the third argument. */
void work_read_reduce(const struct text_name *name, struct work_kernel *kernel)
{
    struct text_name op;
    enum work_type type = WORK_FP32, ignored;

    if (name->arguments.count < 3)
        return;
    text_split(name->arguments.part[2], &op);
    if (op.arguments.count < 4)
        return;
    kernel->operands = 2;
    kernel->bytes[1] = (uint8_t)text_type(op.arguments.part[0], &type);
    kernel->bytes[0] = (uint8_t)text_type(op.arguments.part[3], &ignored);
    kernel->type = (uint8_t)type;
}

static void set_rows(struct work *work, uint64_t rows, uint64_t columns)
{
    work->rows = (struct work_rows){rows, columns, 1};
    work->elements = rows * columns;
    work->flops = (double)work->elements;
}

/* The words are those of the ReduceOp, whose configuration follows a functor
 * and its first value of 4 bytes each, or of 8 and 16. */
bool work_reduce(const struct work_kernel *kernel,
                 const struct work_launch *launch, struct work *work)
{
    uint64_t inputs = launch->words[1] >> 32;
    uint64_t outputs = launch->words[2] & UINT32_MAX;

    work->type = (enum work_type)kernel->type;
    work->element_bytes = kernel->bytes[1];
    if (launch->rule != TRACE_RULE_REDUCE || !inputs || !outputs ||
        !kernel->bytes[1])
        return false;
    set_rows(work, outputs, inputs);
    work->read_bytes = (double)work->elements * kernel->bytes[1];
    work->written_bytes = (double)outputs * kernel->bytes[0];
    return true;
}

/* vectorized_layer_norm_kernel<T, T_ACC, rms>(int columns, ...): a block a
 * row; reads x, weight and bias, writes y and two numbers a row. */
bool work_layer_norm(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work)
{
    uint64_t rows = launch->grid[0];
    uint64_t columns = launch->words[0] & UINT32_MAX;
    double bytes = kernel->type_bytes[0], statistic = kernel->type_bytes[1];
    bool rms = kernel->numbers[0];

    if (launch->rule != TRACE_RULE_WORDS || !columns)
        return false;
    set_rows(work, rows, columns);
    work->read_bytes =
        bytes * (double)(work->elements + (rms ? 1 : 2) * columns);
    work->written_bytes = bytes * (double)work->elements +
                          statistic * (double)rows * (rms ? 1 : 2);
    work->flops = 5.0 * (double)work->elements;
    return true;
}

static bool set_softmax(const struct work_kernel *kernel, uint64_t rows,
                        uint64_t columns, struct work *work)
{
    bool backward = work->family == WORK_SOFTMAX_BACKWARD;
    double bytes = kernel->type_bytes[0];

    if (!rows || !columns || !bytes)
        return false;
    set_rows(work, rows, columns);
    work->read_bytes = bytes * (double)work->elements * (backward ? 2 : 1);
    work->written_bytes = bytes * (double)work->elements;
    work->flops = 5.0 * (double)work->elements;
    return true;
}

/* softmax_warp_forward(dst, src, batch, stride, columns, ...); the backward
 * one has another tensor before. */
bool work_softmax_warp(const struct work_kernel *kernel,
                       const struct work_launch *launch, struct work *work)
{
    bool backward = work->family == WORK_SOFTMAX_BACKWARD;

    work->type = (enum work_type)kernel->type;
    if (launch->rule != TRACE_RULE_WORDS)
        return false;
    if (backward) /* the columns are not among the first four */
        return set_softmax(kernel, launch->words[3] & UINT32_MAX,
                           UINT64_C(1) << (kernel->numbers[0] & 31), work);
    return set_softmax(kernel, launch->words[2] & UINT32_MAX,
                       launch->words[3] & UINT32_MAX, work);
}

/* cunn_SoftMaxForward(out, in, int columns), cunn_SoftMaxBackward(d in, out,
 * d out, long columns): a block a row. */
bool work_softmax_block(const struct work_kernel *kernel,
                        const struct work_launch *launch, struct work *work)
{
    bool backward = work->family == WORK_SOFTMAX_BACKWARD;

    work->type = (enum work_type)kernel->type;
    if (launch->rule != TRACE_RULE_WORDS)
        return false;
    return set_softmax(kernel, launch->grid[0],
                       launch->words[backward ? 3 : 2] & UINT32_MAX, work);
}
