/* SPDX-License-Identifier: Apache-2.0
 * Kernels of PyTorch's that are not carried out and whose names do not say
 * where they write (kernel_pointers.c): their arguments do. */
#include <string.h>

#include "capture/core/compute/compute.h"
#include "capture/core/memory/blocks.h"
#include "capture/core/memory/values.h"
#include "common/base/text_begins.h"

/* Nothing is known from ADDRESS to the end of its block. */
static void forget_rest(uint64_t address)
{
    struct block block;

    if (blocks_find(address, &block))
        memsim_values_forget(address, block.bytes - (address - block.address));
}

/* Compiled at run time, by jitted_gpu_kernel (CUDAJitLoops.cuh): (int count,
 * {out, in, ...}, ...). */
static void run_jitted(const struct compute *c,
                       const struct kernel_launch *launch)
{
    uint64_t out;

    (void)c;
    memcpy(&out, launch->arguments[1], sizeof out);
    forget_rest(out);
}

/* What jit_utils.cpp and the operators call their kernels. */
bool compute_jitted_parse(const char *name, struct compute *c)
{
    size_t length = strlen(name);

    c->run = run_jitted;
    return !text_begins(name, "_Z") && length > 7 &&
           !strcmp(name + length - 7, "_kernel") &&
           (strstr(name, "_vectorized") || !strcmp(name, "gcd_kernel") ||
            !strcmp(name, "lcm_kernel"));
}

/* kernelPointwiseApply2 (TensorInfo out, TensorInfo in, ...) */
static void run_pointwise(const struct compute *c,
                          const struct kernel_launch *launch)
{
    (void)c;
    forget_rest(compute_u64(launch, 0));
}

bool compute_pointwise_parse(const char *name, struct compute *c)
{
    c->run = run_pointwise;
    return text_begins(name, "_ZN2at4cuda");
}

/* DeviceScanKernel (in, out, ...) of operations that nothing here knows. */
static void run_scan_other(const struct compute *c,
                           const struct kernel_launch *launch)
{
    (void)c;
    forget_rest(compute_u64(launch, 1));
}

bool compute_scan_other_parse(const char *name, struct compute *c)
{
    c->run = run_scan_other;
    return strstr(name, "at_cuda_detail3cub");
}

/* Elementwise by a functor that nothing here knows, in place: (int count,
 * functor, {out, in, ...}, ...). Elsewhere the output is a new block. */
static void run_in_place(const struct compute *c,
                         const struct kernel_launch *launch)
{
    uint64_t data[2];

    (void)c;
    memcpy(data, launch->arguments[2], sizeof data);
    if (data[0] == data[1])
        forget_rest(data[0]);
}

bool compute_in_place_parse(const char *name, struct compute *c)
{
    c->run = run_in_place;
    return strstr(name, "rrayIPcL") && !strstr(name, "rrayIPcLm1E") &&
           !strstr(name, "rrayIPcLi1E");
}
