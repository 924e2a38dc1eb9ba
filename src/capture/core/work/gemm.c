/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/gemm.h"

#include "capture/core/work/kernel.h"
#include "capture/core/run/record.h"
#include "capture/core/work/stream.h"

/* The largest power of two that divides all three addresses, up to 256. */
static uint64_t alignment(const struct gemm *g)
{
    uint64_t bits = (uint64_t)g->a | (uint64_t)g->b | (uint64_t)g->c | 256;

    return bits & -bits;
}

static uint64_t pack(int64_t low, int64_t high)
{
    return trace_pack((uint32_t)low, (uint32_t)high);
}

int memsim_gemm(uint32_t name, const struct gemm *g)
{
    int device;
    int rc = memsim_stream_device(g->stream, &device);

    if (rc)
        return rc;
    memsim_kernel_count(device);
    uint64_t types = (uint64_t)g->type_a | (uint64_t)g->type_b << 16 |
                     (uint64_t)g->type_c << 32 | (uint64_t)g->type_d << 48;
    RECORD(GEMM, name, (uint64_t)device, g->stream, (uint64_t)g->m,
           (uint64_t)g->n, (uint64_t)g->k, (uint64_t)g->batch, types,
           pack(g->compute, g->scale), pack(g->transpose_a, g->transpose_b),
           pack(g->lda, g->ldb), pack(g->ldc, g->ldd), (uint64_t)g->stride_a,
           (uint64_t)g->stride_b, (uint64_t)g->stride_c, alignment(g),
           g->epilogue, g->workspace_bytes, g->math_mode);
    return CORE_OK;
}
