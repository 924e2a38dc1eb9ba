/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/work/gemm.h"

#include <stdbool.h>
#include <string.h>

#include "capture/core/base/datatype.h"
#include "capture/core/memory/values.h"
#include "capture/core/work/library_call.h"
#include "capture/core/work/kernel.h"
#include "capture/core/work/submit.h"
#include "capture/core/work/stream.h"

/* The largest power of two that divides all three addresses, up to 256. */
static uint64_t gemm_alignment(const struct gemm *g)
{
    uint64_t bits = (uint64_t)g->a | (uint64_t)g->b | (uint64_t)g->c | 256;

    return bits & -bits;
}

/* Whether beta is not 0, so that the result's old values are read: as far as
 * the host can tell. */
static bool gemm_accumulates(const struct gemm *g)
{
    bool wide = g->scale == 1 || g->scale == 5; /* CUDA_R_64F, CUDA_C_64F */
    size_t bytes = wide ? 8 : g->scale == 2 ? 2 : 4; /* CUDA_R_16F */
    uint64_t bits = 0;

    if (!g->beta || memsim_values_is_device((uint64_t)g->beta))
        return false;
    memcpy(&bits, g->beta, bytes);
    return bits != 0;
}

static uint64_t pack_words(int64_t low, int64_t high)
{
    return trace_pack((uint32_t)low, (uint32_t)high);
}

/* Forgets what the product writes: columns of m elements, ldd apart, of each of
 * the batch; of a batch of pointers what is known of them. */
static void output_forget(const struct gemm *g)
{
    uint64_t unit = datatype_bytes((cudaDataType)g->type_d);
    uint64_t m = (uint64_t)g->m * unit, step = (uint64_t)g->ldd * unit;
    bool is_row = g->ldd < g->m; /* rows of n: cuBLASLt may be asked for */
    uint64_t bytes = is_row ? (uint64_t)g->n * unit : m;
    uint64_t rows = (uint64_t)(is_row ? g->m : g->n);
    uint64_t address = (uint64_t)g->c;

    if (g->batch > 1 && !g->stride_c)
        return;
    if ((uint64_t)g->stride_c * unit == rows * step || g->batch == 1) {
        memsim_call_writes(g->stream, address, bytes, rows * (uint64_t)g->batch,
                           step);
        return;
    }
    memsim_call_writes(g->stream, address, (rows - 1) * step + bytes,
                       (uint64_t)g->batch, (uint64_t)g->stride_c * unit);
}

void gemm_record(uint32_t name, const struct gemm *g, int device)
{
    uint64_t types = (uint64_t)g->type_a | (uint64_t)g->type_b << 16 |
                     (uint64_t)g->type_c << 32 | (uint64_t)g->type_d << 48;
    SUBMIT(GEMM, .name = name, .device = (uint64_t)device, .stream = g->stream,
           .m = (uint64_t)g->m, .n = (uint64_t)g->n, .k = (uint64_t)g->k,
           .batch = (uint64_t)g->batch, .types_a_b_c_d = types,
           .compute_scale = pack_words(g->compute, g->scale),
           .transpose_a_b = pack_words(g->transpose_a, g->transpose_b),
           .lda_ldb = pack_words(g->lda, g->ldb),
           .ldc_ldd = pack_words(g->ldc, g->ldd),
           .stride_a = (uint64_t)g->stride_a, .stride_b = (uint64_t)g->stride_b,
           .stride_c = (uint64_t)g->stride_c, .alignment = gemm_alignment(g),
           .epilogue = g->epilogue, .workspace_bytes = g->workspace_bytes,
           .math_mode = g->math_mode, .accumulates = gemm_accumulates(g));
}

int memsim_gemm(uint32_t name, const struct gemm *g)
{
    int device;
    int rc = memsim_stream_device(g->stream, &device);

    if (rc)
        return rc;
    memsim_kernel_count(device);
    gemm_record(name, g, device);
    output_forget(g);
    return CORE_OK;
}
