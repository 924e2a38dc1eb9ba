/* SPDX-License-Identifier: Apache-2.0
 * What a GPU's file may leave out, because it follows from the rest. */
#include "common/catalogue/gpu.h"
#include "common/catalogue/gpu_field.h"
#include "common/catalogue/nccl_memory.h"
#include "common/base/units.h"

#include <math.h>
#include <string.h>

/* By compute capability; what a row leaves out is 0. Limits: CUDA C++
 * Programming Guide 13.0, "Compute Capabilities", tables "Technical
 * Specifications" and "Arithmetic Instructions" (of 6.x in edition 12.9).
 * Tensor cores: dense operations a clock and SM, from the white papers of
 * GV100, TU102, GA100, GA102, AD102, GH100 and RTX Blackwell; of 10.0, the
 * B200's datasheet peaks over SMs and clock. 6.x has none: fp16 with sums in
 * fp32 runs at the rate of fp32, int8 of 6.1 by dp4a. Contexts:
 * data/gpus/README.md. */
static const struct capability {
    uint32_t major, minor;
    uint32_t threads_per_sm, blocks_per_sm;
    uint32_t shared_kib, shared_optin_kib, shared_reserved_bytes;
    uint32_t fp32_lanes, fp64_lanes;                 /* multiply-adds a clock */
    uint32_t fp64, tf32, fp16, bf16, fp8, int8, fp4; /* tensor cores */
    uint32_t l2_mib;                                 /* of the largest chip */
    uint32_t copy_engines;
    uint32_t context_kib; /* per SM, beside the threads' stacks */
} capabilities[] = {
    /* clang-format off */
    {.major = 6, .threads_per_sm = 2048, .blocks_per_sm = 32,
     .shared_kib = 64, .shared_optin_kib = 48, .fp32_lanes = 64,
     .fp64_lanes = 32, .fp16 = 128, .l2_mib = 4, .copy_engines = 2,
     .context_kib = 1792},
    {.major = 6, .minor = 1, .threads_per_sm = 2048, .blocks_per_sm = 32,
     .shared_kib = 96, .shared_optin_kib = 48, .fp32_lanes = 128,
     .fp64_lanes = 4, .fp16 = 256, .int8 = 1024, .l2_mib = 3,
     .copy_engines = 2, .context_kib = 1792},
    {.major = 7, .threads_per_sm = 2048, .blocks_per_sm = 32,
     .shared_kib = 96, .shared_optin_kib = 96, .fp32_lanes = 64,
     .fp64_lanes = 32, .fp16 = 1024, .l2_mib = 6, .copy_engines = 6,
     .context_kib = 1920},
    {.major = 7, .minor = 5, .threads_per_sm = 1024, .blocks_per_sm = 16,
     .shared_kib = 64, .shared_optin_kib = 64, .fp32_lanes = 64,
     .fp64_lanes = 2, .fp16 = 1024, .int8 = 2048, .l2_mib = 6,
     .copy_engines = 3, .context_kib = 1792},
    {.major = 8, .threads_per_sm = 2048, .blocks_per_sm = 32,
     .shared_kib = 164, .shared_optin_kib = 163,
     .shared_reserved_bytes = 1024, .fp32_lanes = 64, .fp64_lanes = 32,
     .fp64 = 128, .tf32 = 1024, .fp16 = 2048, .bf16 = 2048, .int8 = 4096,
     .l2_mib = 40, .copy_engines = 3, .context_kib = 1972},
    {.major = 8, .minor = 6, .threads_per_sm = 1536, .blocks_per_sm = 16,
     .shared_kib = 100, .shared_optin_kib = 99,
     .shared_reserved_bytes = 1024, .fp32_lanes = 128, .fp64_lanes = 2,
     .tf32 = 512, .fp16 = 1024, .bf16 = 1024, .int8 = 2048, .l2_mib = 6,
     .copy_engines = 2, .context_kib = 1890},
    {.major = 8, .minor = 9, .threads_per_sm = 1536, .blocks_per_sm = 24,
     .shared_kib = 100, .shared_optin_kib = 99,
     .shared_reserved_bytes = 1024, .fp32_lanes = 128, .fp64_lanes = 2,
     .tf32 = 512, .fp16 = 1024, .bf16 = 1024, .fp8 = 2048, .int8 = 2048,
     .l2_mib = 96, .copy_engines = 2, .context_kib = 1576},
    {.major = 9, .threads_per_sm = 2048, .blocks_per_sm = 32,
     .shared_kib = 228, .shared_optin_kib = 227,
     .shared_reserved_bytes = 1024, .fp32_lanes = 128, .fp64_lanes = 64,
     .fp64 = 256, .tf32 = 2048, .fp16 = 4096, .bf16 = 4096, .fp8 = 8192,
     .int8 = 8192, .l2_mib = 50, .copy_engines = 3, .context_kib = 2025},
    {.major = 10, .threads_per_sm = 2048, .blocks_per_sm = 32,
     .shared_kib = 228, .shared_optin_kib = 227,
     .shared_reserved_bytes = 1024, .fp32_lanes = 128, .fp64_lanes = 64,
     .fp64 = 128, .tf32 = 4096, .fp16 = 8192, .bf16 = 8192, .fp8 = 16384,
     .int8 = 16384, .fp4 = 32768, .l2_mib = 126, .copy_engines = 3,
     .context_kib = 2025},
    {.major = 10, .minor = 3, .threads_per_sm = 2048, .blocks_per_sm = 32,
     .shared_kib = 228, .shared_optin_kib = 227,
     .shared_reserved_bytes = 1024, .fp32_lanes = 128, .fp64_lanes = 2,
     .fp64 = 4, .tf32 = 4096, .fp16 = 8192, .bf16 = 8192, .fp8 = 16384,
     .int8 = 544, .fp4 = 49152, .l2_mib = 126, .copy_engines = 3,
     .context_kib = 2025},
    {.major = 12, .threads_per_sm = 1536, .blocks_per_sm = 24,
     .shared_kib = 100, .shared_optin_kib = 99,
     .shared_reserved_bytes = 1024, .fp32_lanes = 128, .fp64_lanes = 2,
     .tf32 = 512, .fp16 = 1024, .bf16 = 1024, .fp8 = 2048, .int8 = 2048,
     .fp4 = 4096, .l2_mib = 128, .copy_engines = 2, .context_kib = 1525},
    /* clang-format on */
};

/* The last row that is not above the GPU's own capability. */
static const struct capability *capability_of(const struct gpu *gpu)
{
    const struct capability *best = capabilities;

    for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++) {
        const struct capability *row = &capabilities[i];
        if (row->major < gpu->capability_major ||
            (row->major == gpu->capability_major &&
             row->minor <= gpu->capability_minor))
            best = row;
    }
    return best;
}

static void default_u32(uint32_t *value, uint32_t other)
{
    if (*value == UINT32_MAX)
        *value = other;
}

static void default_u64(uint64_t *value, uint64_t other)
{
    if (*value == UINT64_MAX)
        *value = other;
}

static void default_limits(const struct capability *row, struct gpu *gpu)
{
    default_u32(&gpu->warp_size, 32);
    default_u32(&gpu->max_threads_per_block, 1024);
    default_u32(&gpu->max_threads_per_sm, row->threads_per_sm);
    default_u32(&gpu->max_blocks_per_sm, row->blocks_per_sm);
    default_u32(&gpu->registers_per_block, 65536);
    default_u32(&gpu->registers_per_sm, 65536);
    default_u32(&gpu->shared_per_block_bytes, 48 * 1024);
    default_u32(&gpu->shared_per_block_optin_bytes,
                row->shared_optin_kib * 1024);
    default_u32(&gpu->shared_per_sm_bytes, row->shared_kib * 1024);
    default_u32(&gpu->shared_reserved_bytes, row->shared_reserved_bytes);
    default_u32(&gpu->fp32_lanes_per_sm, row->fp32_lanes);
}

/* Operations a clock and SM, at the boost clock of all SMs. */
static void default_peak(double *tflops, const struct gpu *gpu, double per_sm)
{
    if (*tflops < 0)
        *tflops = per_sm * gpu->sm_count * gpu->clock_boost_mhz / 1e6;
}

static void default_peaks(const struct capability *row, struct gpu *gpu)
{
    default_peak(&gpu->fp64_tflops, gpu, 2 * row->fp64_lanes);
    default_peak(&gpu->fp64_tensor_tflops, gpu, row->fp64);
    default_peak(&gpu->fp32_tflops, gpu, 2.0 * gpu->fp32_lanes_per_sm);
    default_peak(&gpu->tf32_tflops, gpu, row->tf32);
    default_peak(&gpu->fp16_tflops, gpu, row->fp16);
    default_peak(&gpu->bf16_tflops, gpu, row->bf16);
    default_peak(&gpu->fp8_tflops, gpu, row->fp8);
    default_peak(&gpu->int8_tops, gpu, row->int8);
    default_peak(&gpu->fp4_tflops, gpu, row->fp4);
}

/* data/gpus/README.md, "Memory": nvidia-smi's total holds what the driver
 * keeps, 518 MiB in the median over the GPUs where both are known. */
#define IDLE_PART 10 /* an idle GPU draws about a tenth of its limit */
#define DRIVER_RESERVE_MIB 518

static void default_sizes(struct gpu *gpu)
{
    uint64_t smi = gpu->smi_memory_mib;

    if (gpu->memory_bytes == UINT64_MAX)
        gpu->memory_bytes =
            (smi > 2 * DRIVER_RESERVE_MIB ? smi - DRIVER_RESERVE_MIB
                                          : smi / 2) *
            MIB;
    default_u32(&gpu->smi_memory_mib,
                (uint32_t)((gpu->memory_bytes + MIB - 1) / MIB));
    default_u32(&gpu->ecc, 0);
}

/* Of bandwidth, clock and bus, two tell the third. */
static void default_bandwidth(struct gpu *gpu)
{
    if (gpu->memory_gbps < 0 && gpu->clock_memory_mhz != UINT32_MAX &&
        gpu->memory_bus_bits != UINT32_MAX)
        gpu->memory_gbps =
            2e-3 * gpu->clock_memory_mhz * (gpu->memory_bus_bits / 8.0);
    default_u32(&gpu->memory_bus_bits, 256);
    if (gpu->memory_gbps > 0)
        default_u32(
            &gpu->clock_memory_mhz,
            (uint32_t)lround(gpu->memory_gbps * 4e3 / gpu->memory_bus_bits));
}

/* BYTES for every thread that can be resident, in the 2 MiB that the driver
 * maps at a time. */
static uint64_t for_threads(const struct gpu *gpu, uint64_t bytes)
{
    uint64_t threads = (uint64_t)gpu->sm_count * gpu->max_threads_per_sm;

    return (threads * bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

/* data/gpus/README.md, "Context": the driver sets aside cudaLimitStackSize,
 * 1 KiB, for every thread that can be resident; the rest grows with the SMs.
 * torch's first kernel needs a larger stack. */
#define TORCH_STACK_BYTES  352
#define DRIVER_PART_BYTES  9240576

static void default_context(const struct capability *row, struct gpu *gpu)
{
    uint64_t per_sm = (gpu->max_threads_per_sm + row->context_kib) * KIB;

    default_u64(&gpu->context_bytes, gpu->sm_count * per_sm);
    default_u64(&gpu->context_torch_bytes,
                gpu->context_bytes + for_threads(gpu, TORCH_STACK_BYTES));
    default_u64(&gpu->context_driver_bytes,
                gpu->context_bytes > DRIVER_PART_BYTES ? DRIVER_PART_BYTES : 0);
}

/* data/gpus/README.md, "Libraries", has the sources. Of cuSPARSE's kernels a
 * program uses a twentieth. What an H200's first stream and first communicator
 * take is scaled with the threads. */
#define CUSPARSE_KERNELS_MIB 88
#define STREAMS_THREAD_BYTES 271
#define NCCL_THREAD_BYTES    1880
#define CUFFT_PLAN_BYTES     517000

static uint64_t used_kernels(uint64_t mib)
{
    return (mib / 20 + 1) / 2 * 2 * MIB;
}

static void default_libraries(const struct capability *row, struct gpu *gpu)
{
    bool large = row->major == 9 || row->major == 10;

    default_u64(&gpu->modules_eager_bytes, (row->major < 9 ? 850 : 1270) * MIB);
    default_u64(&gpu->cublas_bytes, (large ? 66 : 4) * MIB);
    default_u64(&gpu->cudnn_bytes, 8 * MIB);
    default_u64(&gpu->cusparse_bytes, used_kernels(CUSPARSE_KERNELS_MIB));
    default_u64(&gpu->cufft_bytes, 8 * MIB);
    default_u64(&gpu->cufft_plan_bytes, CUFFT_PLAN_BYTES);
    default_u64(&gpu->cusolver_bytes, 96 * MIB);
    default_u64(&gpu->cusolver_first_bytes, 4 * MIB);
    default_u64(&gpu->streams_bytes, for_threads(gpu, STREAMS_THREAD_BYTES));
    default_u64(&gpu->managed_bytes, 126 * MIB);
    default_u64(&gpu->nccl_first_bytes, for_threads(gpu, NCCL_THREAD_BYTES));
    default_u64(&gpu->nccl_bytes, 0);
}

static void default_links(const struct capability *row, struct gpu *gpu)
{
    default_u32(&gpu->copy_engines, row->copy_engines);
    default_u64(&gpu->l2_bytes, row->l2_mib * MIB);
    if (gpu->nvlink_gbps < 0)
        gpu->nvlink_gbps = 0;
    default_u32(&gpu->nvlink_links, 0);
    default_u32(&gpu->nccl_channels, nccl_memory_channels(gpu));
    default_u32(&gpu->pcie_generation, row->major >= 9   ? 5
                                       : row->major == 8 ? 4
                                                         : 3);
    default_u32(&gpu->pcie_lanes, 16);
    default_u32(&gpu->power_watts, 300);
    default_u32(&gpu->idle_watts,
                (gpu->power_watts + IDLE_PART - 1) / IDLE_PART);
}

void gpu_field_defaults(struct gpu *gpu)
{
    const struct capability *row = capability_of(gpu);

    if (!gpu->device_name[0])
        memcpy(gpu->device_name, gpu->name, sizeof gpu->name);
    default_limits(row, gpu);
    default_u32(&gpu->clock_base_mhz, gpu->clock_boost_mhz);
    default_u32(&gpu->clock_load_mhz, gpu->clock_boost_mhz);
    default_peaks(row, gpu);
    default_sizes(gpu);
    default_bandwidth(gpu);
    default_context(row, gpu);
    default_libraries(row, gpu);
    default_links(row, gpu);
}
