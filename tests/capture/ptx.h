/* SPDX-License-Identifier: Apache-2.0
 * Kernels as PTX, which the driver loads, a GPU's too: what the runtime
 * launches in the place of nvcc's. */
#ifndef MEMSIM_TESTS_PTX_H
#define MEMSIM_TESTS_PTX_H

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "check.h"

/* One of PyTorch's: fills int[count] at out. memsim carries it out. */
#define PTX_FILL                                                               \
    "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIiEE"   \
    "St5arrayIPcLm1EEEEviT0_T1_"

/* `__global__ void fill(int *out, int n)': n to *out, unless that is NULL. */
#define PTX_STORE "_Z4fillPii"

static const char ptx_kernels[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry " PTX_STORE "(.param .u64 p, .param .u32 q)\n"
    "{ .reg .pred %p; .reg .b64 %a; .reg .b32 %n;\n"
    "  ld.param.u64 %a, [p]; ld.param.u32 %n, [q];\n"
    "  setp.eq.u64 %p, %a, 0; @%p ret;\n"
    "  st.u32 [%a], %n; ret; }\n"
    ".visible .entry " PTX_FILL "(.param .u32 p, .param .u32 q,"
    " .param .align 8 .b8 r[8])\n"
    "{ .reg .pred %p; .reg .b64 %a, %b; .reg .b32 %c, %v, %i;\n"
    "  ld.param.u32 %c, [p]; ld.param.u32 %v, [q]; ld.param.u64 %a, [r];\n"
    "  mov.u32 %i, %tid.x; setp.ge.u32 %p, %i, %c; @%p ret;\n"
    "  mul.wide.u32 %b, %i, 4; add.u64 %a, %a, %b;\n"
    "  st.u32 [%a], %v; ret; }\n";

/* The kernel NAME of these, for cudaLaunchKernel. */
__attribute__((unused)) static const void *ptx_kernel(const char *name)
{
    CUlibrary library = NULL;
    CUkernel kernel = NULL;

    CHECK(!cudaFree(NULL)); /* a context */
    CHECK(!cuLibraryLoadData(&library, ptx_kernels, NULL, NULL, 0, NULL, NULL,
                             0));
    CHECK(!cuLibraryGetKernel(&kernel, library, name));
    return kernel;
}

#endif
