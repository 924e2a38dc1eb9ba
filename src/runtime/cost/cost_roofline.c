/* SPDX-License-Identifier: Apache-2.0
 * The physical limit of an operation, and a roofline with three numbers. */
#include "common/catalogue/gpu.h"
#include "common/trace/trace.h"
#include "runtime/cost/cost.h"
#include "runtime/cost/cost_features.h"
#include "runtime/cost/cost_image.h"

#include <math.h>

#define WINOGRAD 4.0

/* A lane's rate in 1e9 bytes a second by generation: 2.5, 5, 8, 16, 32 and 64
 * GT/s after 8b/10b or 128b/130b. PCIe 6 counts as 5: no GPU of the catalogue
 * has it. Packet headers take another 10% (256 bytes of payload). */
static double pcie_lane_gbps(uint32_t generation)
{
    static const double rates[] = {0, 0.25, 0.5, 0.985, 1.969, 3.938};
    uint32_t last = sizeof rates / sizeof *rates - 1;

    return 0.9 * rates[generation < last ? generation : last];
}

/* Tensor cores at the clock that the power limit leaves them. */
static double loaded_rate(const struct gpu *gpu, double tflops)
{
    return tflops * (gpu->load_ratio > 0 ? gpu->load_ratio : 1);
}

void cost_gpu_set(const struct gpu *gpu, struct cost_gpu *limits)
{
    *limits = (struct cost_gpu){
        .memory_gbps = gpu->memory_gbps,
        .tflops =
            {
                [WORK_FP32] = gpu->fp32_tflops,
                [WORK_TF32] = loaded_rate(gpu, gpu->tf32_tflops),
                [WORK_FP16] = loaded_rate(gpu, gpu->fp16_tflops),
                [WORK_BF16] = loaded_rate(gpu, gpu->bf16_tflops),
                [WORK_FP64] = fmax(gpu->fp64_tflops, gpu->fp64_tensor_tflops),
                [WORK_FP8] = loaded_rate(gpu, gpu->fp8_tflops),
                [WORK_INT8] = loaded_rate(gpu, gpu->int8_tops),
                [WORK_INTEGER] = gpu->fp32_tflops / 2,
                [WORK_FP4] = loaded_rate(gpu, gpu->fp4_tflops),
            },
        .l2_bytes = (double)gpu->l2_bytes,
        .pcie_gbps = pcie_lane_gbps(gpu->pcie_generation) * gpu->pcie_lanes,
        .nvlink_gbps = gpu->nvlink_gbps,
        .sm_count = gpu->sm_count,
        .clock_mhz = gpu->clock_boost_mhz,
        .sm_threads = gpu->max_threads_per_sm,
        .sm_blocks = gpu->max_blocks_per_sm,
        .capability = gpu->capability_major * 10 + gpu->capability_minor,
    };
}

/* The peak for TYPE. A type that the GPU lacks is computed in a wider one:
 * cuBLAS and PyTorch fall back to fp32. */
static double peak_tflops(const struct cost_gpu *gpu, enum work_type type)
{
    double peak = (unsigned)type < WORK_TYPES ? gpu->tflops[type] : 0;

    if (peak <= 0)
        peak = gpu->tflops[WORK_FP32];
    return peak > 0 ? peak : 1;
}

static bool is_convolution(enum work_family family)
{
    return family >= WORK_CONVOLUTION_FORWARD &&
           family <= WORK_CONVOLUTION_WGRAD;
}

static double memory_bytes(const struct work *work)
{
    return work->read_bytes + work->written_bytes;
}

/* Backward attention computes 5 products where forward computes 2. */
#define ATTENTION_BACKWARD 2.5

static bool is_depthwise(const struct work *work)
{
    return is_convolution(work->family) && work_variant(work) == 1;
}

/* Depthwise convolutions do not use tensor cores. */
static enum work_type computed_type(const struct work *work)
{
    return is_depthwise(work) ? WORK_FP32 : work->type;
}

/* What the kernel computes: attention works on whole tiles. */
static double computed_flops(const struct work *work)
{
    if (work->family == WORK_ATTENTION_FORWARD)
        return cost_attention_flops(&work->attention);
    if (work->family == WORK_ATTENTION_BACKWARD)
        return ATTENTION_BACKWARD * cost_attention_flops(&work->attention);
    return work->flops;
}

/* 1 Gbyte/s is one byte a nanosecond; 1 TFLOP/s is 1000 operations. */
static double compute_ns(const struct cost_gpu *gpu, enum work_type type,
                         double flops)
{
    return flops / (1e3 * peak_tflops(gpu, type));
}

/* Kernels that load elements one by one are bound by instructions: the time of
 * one element a cycle on each multiprocessor. */
static double lanes_ns(const struct cost_gpu *gpu, const struct work *work)
{
    double ghz = gpu->clock_mhz ? 1e-3 * gpu->clock_mhz : 1;

    return (double)work->elements / (fmax(gpu->sm_count, 1) * ghz);
}

static double arithmetic_ns(const struct cost_gpu *gpu, const struct work *work)
{
    if (work->family == WORK_STRIDED)
        return lanes_ns(gpu, work);
    return compute_ns(gpu, computed_type(work), computed_flops(work));
}

/* Rate between the host and the GPU, or within it. A pageable copy goes
 * through a pinned buffer of the driver. */
static double link_gbps(const struct cost_gpu *gpu, const struct work *work)
{
    if (work->family != WORK_COPY || work->direction == TRACE_DEVICE_TO_DEVICE)
        return gpu->memory_gbps;
    return fmax(gpu->pcie_gbps, 1) * (work->pinned ? 1 : 0.5);
}

static double moved_ns(const struct cost_gpu *gpu, const struct work *work)
{
    double bytes = memory_bytes(work);

    /* the host's half of a copy is not the GPU's traffic */
    if (work->family == WORK_COPY && work->direction != TRACE_DEVICE_TO_DEVICE)
        bytes = fmax(work->read_bytes, work->written_bytes);
    return bytes / fmax(link_gbps(gpu, work), 1);
}

/* An elementwise kernel finds what the one before it left in the L2 cache: half
 * of it, in microsoft/vidur's additions on an A40 (6 MiB) and an A100 (40 MiB),
 * whose rate above the floor falls from 1.9 to 0.58 and from 2.8 to 1.75 TB/s.
 * Those bytes come at 13 a cycle of a multiprocessor on the A40, 18 on the
 * A100. Norms and softmax, which are bound by more than bytes, do not show it
 * (`memsim fit --eval --unseen`). */
#define NEAR           0.5
#define L2_CYCLE_BYTES 13.0

static double l2_gbps(const struct cost_gpu *gpu)
{
    return L2_CYCLE_BYTES * gpu->sm_count * 1e-3 * gpu->clock_mhz;
}

/* What BYTES take of which the first come from the cache. */
static double line_moved_ns(const struct cost_roofline *line,
                            const struct cost_gpu *gpu, const struct work *work)
{
    double bytes = memory_bytes(work);
    double near = fmin(bytes, line->near * gpu->l2_bytes);
    double far = moved_ns(gpu, work) / line->memory;

    if (!(near > 0) || l2_gbps(gpu) <= gpu->memory_gbps)
        return far;
    return far * (1 - near / bytes) + near / l2_gbps(gpu);
}

/* GeForce and workstation GPUs run above the clock that their peaks count with:
 * 74 of 71 TFLOP/s in LLMServingSim's products of an RTX 3090, 86.7 of 82.6
 * in mli/transformers-benchmarks on an RTX 4090. */
#define ABOVE_BOOST 1.15

static double power_headroom(const struct cost_gpu *gpu)
{
    return gpu->capability % 10 || gpu->capability >= 120 ? ABOVE_BOOST : 1;
}

double cost_bound_ns(const struct cost_gpu *gpu, const struct work *work)
{
    double arithmetic =
        compute_ns(gpu, computed_type(work), work->flops) / power_headroom(gpu);
    double memory =
        memory_bytes(work) > gpu->l2_bytes ? moved_ns(gpu, work) : 0;

    if (is_convolution(work->family))
        arithmetic /= WINOGRAD;
    return fmax(arithmetic, memory);
}

/* Backward attention is several kernels, one after the other: sums of the
 * result times its gradient, the products, the queries' gradient out of fp32.
 * The first and the last one are bound by bytes, so that times add up. */
static bool is_in_sequence(const struct work *work)
{
    return work->family == WORK_ATTENTION_BACKWARD;
}

double cost_roofline_ns(const struct cost_roofline *line,
                        const struct cost_gpu *gpu, const struct work *work)
{
    double arithmetic = arithmetic_ns(gpu, work) / line->compute;
    double moved = line_moved_ns(line, gpu, work);

    if (is_in_sequence(work))
        return line->floor_ns + arithmetic + moved;
    return line->floor_ns + fmax(arithmetic, moved);
}

/* {floor, compute, memory}; COMPUTE of strided kernels is in elements a cycle
 * of a multiprocessor: 1.3 in AMD-AGI/TraceLens's profiles of an H100. Rates
 * are those of an H100's published kernel times over its peaks: contiguous 2.9
 * TB/s, copies and concatenation 2.0, reductions 2.7, norms and softmax 2.4,
 * backward 2.0, optimizers 2.7 of 3.35; fp32 0.75 of 67 TFLOP/s; flash
 * attention 2 300 of 989. */
#define LINES(X)                                                               \
    X(NOTHING, 0, 1, 1, 0)                                                     \
    X(ELEMENTWISE, 2000, 0.5, 0.87, NEAR)                                      \
    X(STRIDED, 2000, 1.3, 0.8, NEAR)                                           \
    X(REDUCE, 3000, 0.5, 0.8, 0)                                               \
    X(NORM_FORWARD, 3000, 0.5, 0.7, 0)                                         \
    X(NORM_BACKWARD, 4000, 0.5, 0.6, 0)                                        \
    X(SOFTMAX_FORWARD, 3000, 0.5, 0.75, 0)                                     \
    X(SOFTMAX_BACKWARD, 3000, 0.5, 0.65, 0)                                    \
    X(INDEX, 3000, 0.5, 0.5, 0)                                                \
    X(SORT, 10000, 0.5, 0.3, 0)                                                \
    X(OPTIMIZER, 3000, 0.5, 0.8, 0)                                            \
    X(POOL, 3000, 0.5, 0.6, 0)                                                 \
    X(GEMM, 3000, 0.65, 0.75, 0)                                               \
    X(ATTENTION_FORWARD, 5000, 0.35, 0.6, 0)                                   \
    X(ATTENTION_BACKWARD, 8000, 0.33, 0.42, 0)                                 \
    X(CONVOLUTION_FORWARD, 5000, 0.5, 0.6, 0)                                  \
    X(CONVOLUTION_DGRAD, 5000, 0.4, 0.5, 0)                                    \
    X(CONVOLUTION_WGRAD, 5000, 0.3, 0.5, 0)                                    \
    X(COPY, 1500, 1, 0.9, 0)                                                   \
    X(SET, 900, 1, 0.85, 0)                                                    \
    X(COLLECTIVE, 10000, 1, 0.7, 0)                                            \
    X(OTHER, 3000, 0.4, 0.6, 0)

#define LINE(id, ...) [WORK_##id] = {__VA_ARGS__},
static const struct cost_roofline lines[WORK_FAMILIES] = {LINES(LINE)};
#undef LINE

#define ONE(...) +1
_Static_assert(0 LINES(ONE) == WORK_FAMILIES,
               "a family of work.h has no roofline in LINES");
#undef ONE

/* fp32 without tensor cores comes nearer to its peak. */
static const struct cost_roofline plain_gemm = {4000, 0.75, 0.75, 0};
/* The kernels of a top-k are many and small, and none waits for all blocks. */
static const struct cost_roofline select_line = {3000, 0.5, 0.3, 0};
static const struct cost_roofline plain_attention = {6000, 0.42, 0.6, 0};
static const struct cost_roofline plain_backward = {8000, 0.37, 0.5, 0};

/* Depthwise convolutions, of the fp32 peak: 1.9 to 2.4 of 67 TFLOP/s forward
 * in KernelBench (3 x 3 and 3 x 7, NCHW, H100). Nobody published backward: the
 * input's gradient counts as forward, the filter's as half as fast. */
static const struct cost_roofline depthwise = {5000, 0.032, 0.5, 0};
static const struct cost_roofline depthwise_wgrad = {8000, 0.016, 0.5, 0};

/* PyTorch's memory-efficient kernels, forward and backward: 108 TFLOP/s
 * together on an H200, from what a Llama step of 16384 tokens takes more with
 * them than with flash attention 2 (NVIDIA/cudnn-frontend, benchmark/
 * Llama-3.2-1B-Training). */
static const struct cost_roofline efficient_forward = {6000, 0.14, 0.6, 0};
static const struct cost_roofline efficient_backward = {10000, 0.1, 0.5, 0};

const struct cost_roofline *cost_roofline_default(const struct work *work)
{
    bool plain = work->type == WORK_FP32 || work->type == WORK_FP64;
    bool backward = work->family == WORK_ATTENTION_BACKWARD;

    if (work->family == WORK_GEMM && plain)
        return &plain_gemm;
    if (work->family == WORK_SORT && work->sort == WORK_SORT_SELECT)
        return &select_line;
    if (work->family == WORK_ATTENTION_FORWARD || backward) {
        if (plain)
            return backward ? &plain_backward : &plain_attention;
        if (work->attention.kernel == WORK_ATTENTION_EFFICIENT)
            return backward ? &efficient_backward : &efficient_forward;
    }
    if (is_depthwise(work))
        return work->family == WORK_CONVOLUTION_WGRAD ? &depthwise_wgrad
                                                      : &depthwise;
    return &lines[(unsigned)work->family < WORK_FAMILIES ? work->family
                                                         : WORK_OTHER];
}

double cost_roofline_near(enum work_family family)
{
    return (unsigned)family < WORK_FAMILIES ? lines[family].near : 0;
}

const char *cost_roofline_check(const struct cost_roofline *line, size_t size)
{
    if (size < sizeof *line)
        return "a roofline is cut short";
    if (!(line->floor_ns >= 0 && isfinite(line->floor_ns)))
        return "a roofline's floor is negative";
    if (!(line->compute > 0 && line->compute < 1e3) ||
        !(line->memory > 0 && line->memory < 1e7))
        return "a roofline's efficiency is not above 0";
    if (!(line->near >= 0 && line->near <= 1))
        return "a roofline's share of the cache is not in 0 to 1";
    return NULL;
}
