/* SPDX-License-Identifier: Apache-2.0
 * Kernels that work on rows: reductions (Reduce.cuh), norms
 * (layer_norm_kernel.cu) and softmax (SoftMax.cu, PersistentSoftmax.cuh). */
#include "kernels/work_internal.h"

/* ReduceOp<scalar, operation, index, result, ...> is the third argument. */
void work_read_reduce(const struct cxx_name *name, struct work_kernel *kernel)
{
    struct cxx_name op;
    enum work_type type = WORK_FP32, ignored;

    if (name->arguments.count < 3)
        return;
    cxx_split(name->arguments.part[2], &op);
    if (op.arguments.count < 4)
        return;
    kernel->operands = 2;
    kernel->bytes[1] = (uint8_t)work_type_read(op.arguments.part[0], &type);
    kernel->bytes[0] = (uint8_t)work_type_read(op.arguments.part[3], &ignored);
    kernel->type = (uint8_t)type;
}

static void set_rows(struct work *work, uint64_t rows, uint64_t columns)
{
    work->rows = (struct work_rows){rows, columns, 1, 0};
    work->elements = rows * columns;
    work->flops = (double)work->elements;
}

/* ReduceConfig: the blocks of a column of the grid share their outputs. The
 * last of them adds what all have left in memory, a row of threads each its
 * part. */
static uint64_t partials_of(const struct work_launch *launch)
{
    uint64_t parts = launch->grid[1], rows = launch->block[1];

    return parts > 1 ? (parts + rows - 1) / rows : 0;
}

bool work_reduce(const struct work_kernel *kernel,
                 const struct work_launch *launch, struct work *work)
{
    uint64_t inputs = launch->words[0], outputs = launch->words[1];

    work->type = (enum work_type)kernel->type;
    work->element_bytes = kernel->bytes[1];
    if (launch->rule != TRACE_RULE_REDUCTION || !inputs || !outputs ||
        !kernel->bytes[1])
        return false;
    set_rows(work, outputs, inputs);
    if (launch->words[3] > kernel->bytes[1])
        work->rows.stride = launch->words[3] / kernel->bytes[1];
    work->rows.partials = partials_of(launch);
    work->rate =
        work->rows.stride > 1 ? WORK_RATE_SUM_OUTER : WORK_RATE_SUM_INNER;
    work->read_bytes = (double)work->elements * kernel->bytes[1];
    work->written_bytes = (double)outputs * kernel->bytes[0];
    return true;
}

/* --- pooling -------------------------------------------------------------- */

enum { INDEX_BYTES = 8 };

static bool set_pool(double read, double written, uint64_t elements,
                     struct work *work)
{
    work->elements = elements;
    work->flops = (double)elements;
    work->read_bytes = read;
    work->written_bytes = written;
    return elements > 0;
}

/* The numbers of all: first, channels, height, width, pooled height and width,
 * ... OUT elements of INDEX more bytes each. */
static bool pool_forward(const struct work_kernel *kernel,
                         const struct work_launch *launch, bool first_is_out,
                         uint32_t index, struct work *work)
{
    const uint64_t *w = launch->words;
    double bytes = kernel->type_bytes[0];
    double pooled = (double)w[4] * (double)w[5];

    if (launch->rule != TRACE_RULE_SIZES || pooled <= 0)
        return false;
    double planes =
        first_is_out ? (double)w[0] / pooled : (double)w[0] * (double)w[1];
    return set_pool(bytes * planes * (double)w[2] * (double)w[3],
                    (bytes + index) * planes * pooled,
                    (uint64_t)(planes * pooled), work);
}

/* DilatedMaxPool2d.cu: max_pool_forward_nchw<T, ...>(results, in, channels,
 * height, width, pooled height, pooled width, ...). */
bool work_max_pool(const struct work_kernel *kernel,
                   const struct work_launch *launch, struct work *work)
{
    return pool_forward(kernel, launch, true, INDEX_BYTES, work);
}

/* max_pool_forward_nhwc(in, batch, channels, ...) */
bool work_max_pool_nhwc(const struct work_kernel *kernel,
                        const struct work_launch *launch, struct work *work)
{
    return pool_forward(kernel, launch, false, INDEX_BYTES, work);
}

/* AveragePool2d.cu: avg_pool2d_out_cuda_frame(results, in, channels, ...) */
bool work_average_pool(const struct work_kernel *kernel,
                       const struct work_launch *launch, struct work *work)
{
    return pool_forward(kernel, launch, true, 0, work);
}

/* max_pool_backward_nchw(d out, mask, batch, channels, height, width, pooled
 * height, pooled width, ...); nhwc has the same numbers. */
bool work_max_pool_backward(const struct work_kernel *kernel,
                            const struct work_launch *launch, struct work *work)
{
    const uint64_t *w = launch->words;
    double bytes = kernel->type_bytes[0];
    double planes = (double)w[0] * (double)w[1];

    if (launch->rule != TRACE_RULE_SIZES || planes <= 0)
        return false;
    double out = planes * (double)w[2] * (double)w[3];
    return set_pool((bytes + INDEX_BYTES) * planes * (double)w[4] *
                        (double)w[5],
                    bytes * out, (uint64_t)out, work);
}

/* --- interpolation -------------------------------------------------------- */

/* PLANES of IN and OUT elements, each read or written once. The larger side
 * counts: a thread of either pass goes over it. */
static bool set_planes(const struct work_kernel *kernel, double planes,
                       double in, double out, struct work *work)
{
    double bytes = kernel->type_bytes[0] ? kernel->type_bytes[0] : 4;
    double more = in > out ? in : out;

    return set_pool(bytes * planes * in, bytes * planes * out,
                    (uint64_t)(planes * more), work);
}

/* UpSampleNearest2d.cu: upsample_nearest2d_out_frame(in, out, planes, height,
 * width, new height, new width, ...) */
bool work_upsample(const struct work_kernel *kernel,
                   const struct work_launch *launch, struct work *work)
{
    const uint64_t *w = launch->words;

    if (launch->rule != TRACE_RULE_SIZES)
        return false;
    return set_planes(kernel, (double)w[0], (double)w[1] * (double)w[2],
                      (double)w[3] * (double)w[4], work);
}

/* upsample_nearest2d_backward_out_frame(gradient, batch, channels, height,
 * width, those of the result, ...) */
bool work_upsample_backward(const struct work_kernel *kernel,
                            const struct work_launch *launch, struct work *work)
{
    const uint64_t *w = launch->words;

    if (launch->rule != TRACE_RULE_SIZES)
        return false;
    return set_planes(kernel, (double)w[0] * (double)w[1],
                      (double)w[2] * (double)w[3], (double)w[4] * (double)w[5],
                      work);
}

/* upsample_nearest2d_nhwc_out_frame(in, out, channels, height, width, new
 * height, new width, ..., elements of the result) */
bool work_upsample_nhwc(const struct work_kernel *kernel,
                        const struct work_launch *launch, struct work *work)
{
    const uint64_t *w = launch->words;
    double out = (double)w[3] * (double)w[4];

    if (launch->rule != TRACE_RULE_SIZES || out <= 0)
        return false;
    return set_planes(kernel, (double)w[5] / out, (double)w[1] * (double)w[2],
                      out, work);
}

/* The integers among its arguments. */
enum { TOLD_ELEMENTS, TOLD_SHARES, TOLD_NS, TOLD_NODES };

bool work_told(const struct work_kernel *kernel,
               const struct work_launch *launch, struct work *work)
{
    (void)kernel;
    if (launch->rule != TRACE_RULE_SIZES)
        return false;
    work->told_ns = launch->words[TOLD_NS];
    work->between_nodes = launch->words[TOLD_NODES] > 1;
    return true;
}

bool work_told_delay(const struct work_kernel *kernel,
                     const struct work_launch *launch, struct work *work)
{
    (void)kernel;
    if (launch->rule != TRACE_RULE_SIZES)
        return false;
    work->told_ns = launch->words[0];
    work->told_parts = launch->words[1];
    return true;
}
