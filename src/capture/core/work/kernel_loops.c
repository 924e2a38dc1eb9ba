/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch's kernels over strided tensors are given, as
 * aten/src/ATen/cuda/detail/OffsetCalculator.cuh and native/cuda/Reduce.cuh of
 * 2.5 to 2.15 lay it out for CUDA. */
#include <string.h>

#include "capture/core/memory/values.h"
#include "capture/core/work/kernel.h"

#define DIMENSIONS_MAX 25 /* MAX_DIMS */
#define TENSORS_MAX    8

/* OffsetCalculator<n, uint32_t>: {int dims; IntDivider sizes[25]; uint32_t
 * strides[25][n];}, strides in bytes, the innermost dimension first. */
struct divider {
    uint32_t divisor, magic, shift;
};

struct offsets {
    int32_t dimensions;
    struct divider sizes[DIMENSIONS_MAX];
    uint32_t strides[]; /* [DIMENSIONS_MAX][n] */
};

static size_t offsets_bytes(uint32_t tensors)
{
    return sizeof(struct offsets) + 4 * (size_t)DIMENSIONS_MAX * tensors;
}

static bool is_plausible(const struct offsets *o, uint64_t elements)
{
    uint64_t product = 1;

    if (o->dimensions < 0 || o->dimensions > DIMENSIONS_MAX)
        return false;
    for (int i = 0; i < o->dimensions && product <= elements; i++)
        product *= o->sizes[i].divisor;
    return product == elements;
}

static struct trace_strided tensor_read(const struct offsets *o,
                                        uint32_t tensors, uint32_t tensor)
{
    struct trace_strided s = {.elements = 1};

    for (int i = 0; i < o->dimensions; i++) {
        uint32_t stride = o->strides[(uint32_t)i * tensors + tensor];

        if (i == 0)
            s.inner_bytes = stride;
        if (!stride || o->sizes[i].divisor < 2)
            continue;
        s.elements *= o->sizes[i].divisor;
        if (!s.least_bytes || stride < s.least_bytes)
            s.least_bytes = stride;
    }
    return s;
}

/* The lambda of gpu_kernel_impl (CUDALoops.cuh) has the calculator first, then
 * as many addresses. */
static bool addresses_follow(const struct offsets *o, uint32_t tensors)
{
    size_t at = (offsets_bytes(tensors) + 7) & ~(size_t)7;
    uint64_t address;

    for (uint32_t i = 0; i < tensors; i++) {
        memcpy(&address, (const char *)o + at + 8 * i, sizeof address);
        if (!memsim_values_is_device(address))
            return false;
    }
    return true;
}

bool kernel_strided_read(const struct kernel_launch *launch, uint32_t tensors,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    const struct offsets *o = launch->arguments[1];
    int32_t elements;

    memcpy(&elements, launch->arguments[0], sizeof elements);
    words[0] = elements > 0 ? (uint64_t)elements : 0;
    if (!tensors || tensors > TENSORS_MAX || !is_plausible(o, words[0]) ||
        !addresses_follow(o, tensors))
        return false;
    words[1] = tensors;
    for (uint32_t i = 0; i < tensors && i + 2 < TRACE_LAUNCH_WORDS; i++) {
        const struct trace_strided s = tensor_read(o, tensors, i);

        words[2 + i] = trace_strided_pack(&s);
    }
    return true;
}

/* ReduceConfig. In a ReduceOp, it comes after the functor and the first value,
 * whose sizes depend on the operation; an OffsetCalculator of the reduced
 * dimensions follows. */
struct reduce_config {
    int32_t element_bytes, inputs, outputs, step_input, step_output,
        blocks_per_output, input_mult[3], output_mult[2], block_width,
        block_height, threads;
    int32_t vectorize_input, output_vector;
};

#define CONFIG_OFFSET_MAX 96

/* The numbers of threads are the launch's own: nothing else looks like it. */
static bool is_config(const struct reduce_config *c,
                      const struct kernel_launch *launch)
{
    return c->element_bytes > 0 && c->element_bytes <= 64 && c->inputs > 0 &&
           c->outputs > 0 && c->block_width == (int32_t)launch->block[0] &&
           c->block_height == (int32_t)launch->block[1] &&
           c->threads == c->block_width * c->block_height &&
           c->blocks_per_output > 0;
}

bool kernel_reduction_read(const struct kernel_launch *launch,
                           uint64_t words[TRACE_LAUNCH_WORDS])
{
    const char *op = launch->arguments[0];
    struct reduce_config config;

    for (size_t at = 4; at <= CONFIG_OFFSET_MAX; at += 4) {
        memcpy(&config, op + at, sizeof config);
        if (!is_config(&config, launch))
            continue;
        const struct offsets *reduced =
            (const struct offsets *)(op + at + sizeof config);
        words[0] = (uint64_t)config.inputs;
        words[1] = (uint64_t)config.outputs;
        words[2] = (uint64_t)config.blocks_per_output;
        if (reduced->dimensions > 0 && reduced->dimensions <= DIMENSIONS_MAX)
            words[3] = reduced->strides[0];
        return true;
    }
    return false;
}
