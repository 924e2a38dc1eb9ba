/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/pipe_adds.h"

#include <inttypes.h>
#include <string.h>

#define THREADS        128
#define BLOCK_ELEMENTS 1024 /* 8 of each thread */

/* PyTorch 2.11's; the type of the elements is what the cost models read. */
static const struct {
    uint64_t element_bytes;
    const char *name;
} kernels[] = {
    {4, "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_"
        "addIfEESt5arrayIPcLm3EEEEviT0_T1_"},
    {2, "_ZN2at6native29vectorized_elementwise_kernelILi8ENS0_15CUDAFunctor_"
        "addIN3c108BFloat16EEESt5arrayIPcLm3EEEEviT0_T1_"},
    {8, "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_15CUDAFunctor_"
        "addIdEESt5arrayIPcLm3EEEEviT0_T1_"},
};

const char *pipe_adds_name(uint64_t element_bytes)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (kernels[i].element_bytes == element_bytes)
            return kernels[i].name;
    return NULL;
}

int pipe_adds_check(const struct records *r, struct err *err)
{
    for (size_t i = 0; i < r->parameter_count; i++)
        if (!pipe_adds_name(r->parameters[i].element_bytes))
            return err_set(err,
                           "--change: a step of the recording has one "
                           "microbatch, and how gradients with %" PRIu64
                           " bytes of an element are added is not known: "
                           "record the script with two backwards before the "
                           "optimizer's step",
                           r->parameters[i].element_bytes);
    return 0;
}

struct trace_launch pipe_adds_launch(const struct parameter *p, uint64_t name)
{
    uint64_t blocks = (p->elements + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS;
    uint64_t bytes = p->element_bytes;

    return (struct trace_launch){
        .name = name,
        .grid_x_y = trace_pack((uint32_t)blocks, 1),
        .grid_z_block_x = trace_pack(1, THREADS),
        .block_y_z = trace_pack(1, 1),
        .shared_bytes_rule = trace_pack(0, TRACE_RULE_ELEMENTWISE),
        .a = p->elements,
        .b = 3,
        .c = bytes | bytes << 8 | bytes << 16,
    };
}
