/* SPDX-License-Identifier: Apache-2.0
 * What products take at least for the layout of their operands, and attention
 * for its dropout. */
#include "runtime/cost/cost_rates.h"

#include <math.h>

static double whole_tiles(uint64_t extent, uint64_t tile)
{
    return (double)((extent + tile - 1) / tile * tile);
}

/* The tile of a kernel for misaligned products of M x N. */
static uint64_t crooked_tile(const struct work_gemm *g)
{
    uint64_t most = g->m > g->n ? g->m : g->n;

    return most > 64 ? 128 : most > 32 ? 64 : 32;
}

static bool is_half(enum work_type type)
{
    return type == WORK_FP16 || type == WORK_BF16;
}

/* Bytes of an operand's row: its leading dimension, or what it has packed. */
static uint64_t row_bytes(uint64_t leading, uint64_t packed, uint32_t bytes)
{
    return (leading ? leading : packed) * bytes;
}

struct rows {
    uint64_t any;    /* all rows' bytes, or-ed: its last bits align them */
    uint64_t result; /* of the result alone */
};

static struct rows rows_of(const struct work *work)
{
    const struct work_gemm *g = &work->gemm;
    uint32_t bytes = is_half(work->type) ? 2 : 4;
    uint64_t a = row_bytes(g->lda, g->transpose_a ? g->m : g->k, bytes);
    uint64_t b = row_bytes(g->ldb, g->transpose_b ? g->k : g->n, bytes);
    uint64_t c = row_bytes(g->ldc, g->n, bytes);

    return (struct rows){a | b | c, c};
}

/* 16-bit products whose rows do not start at 16 bytes run kernels that load and
 * store 2 to 8 bytes at a time. What those reach, by clock and multiprocessor:
 *
 * 2 bytes  the median of 621 operations of whole tiles (M = 9477, N = 1152,
 *          K = 588 at 1.2 GHz, m87-labs/kestrel pull request 143), 557 and 515
 *          (96 x 3137 x 64 x 3137 and 16 x 5185 x 64 x 5185 in AMD-AGI/
 *          TraceLens's traces of an H100, at the boost clock); and the
 * geometric mean of 7.0 and 4.7 bytes of a misaligned result that are left in
 *          96 x 3137 x 3137 x 64 and 16 x 5185 x 5185 x 64. An H200 with a
 *          vocabulary of 50257: 537 to 585, and 397 where both operands have
 *          their rows along K.
 * 4 bytes  the same with one of 30522: 900 to 945, results included. */
#define ODD_FLOPS    557.0
#define ODD_TN_FLOPS 397.0
#define ODD_BYTES    5.7
#define EVEN_FLOPS   918.0

static double crooked_cycles(const struct work *work)
{
    const struct work_gemm *g = &work->gemm;
    const struct rows rows = rows_of(work);
    uint64_t tile = crooked_tile(g);
    double flops = 2 * whole_tiles(g->m, tile) * whole_tiles(g->n, tile) *
                   (double)g->k * (double)g->batch;

    if (rows.any % 16 == 0)
        return 0;
    if (rows.any % 4 == 0)
        return flops / EVEN_FLOPS;
    bool along_k = !g->transpose_a && g->transpose_b;
    double stored = rows.result % 16 ? work->written_bytes : 0;
    return flops / (along_k ? ODD_TN_FLOPS : ODD_FLOPS) + stored / ODD_BYTES;
}

/* TF32 in the layout of weights' gradients, where neither operand has its rows
 * along K, and with rows not of 16 bytes: 540 to 780 and 450 to 500 operations
 * a cycle of a multiprocessor of an H200, where others do 980 to 1400. */
#define TF32_NT_FLOPS      650.0
#define TF32_CROOKED_FLOPS 475.0

static double tf32_cycles(const struct work *work)
{
    const struct work_gemm *g = &work->gemm;

    if (rows_of(work).any % 16)
        return work->flops / TF32_CROOKED_FLOPS;
    return g->transpose_a && !g->transpose_b ? work->flops / TF32_NT_FLOPS : 0;
}

double cost_layout_ns(const struct cost_gpu *gpu, const struct work *work)
{
    double clocks = 1e-3 * gpu->clock_mhz * gpu->sm_count; /* a nanosecond */

    if (work->family != WORK_GEMM || !(clocks > 0))
        return 0;
    if (is_half(work->type))
        return crooked_cycles(work) / clocks;
    if (work->type == WORK_TF32 && gpu->capability >= 90)
        return tf32_cycles(work) / clocks;
    return 0;
}
