/* SPDX-License-Identifier: Apache-2.0
 * What a GPU's file may leave out, because it follows from the rest. */
#include "common/gpu.h"
#include "common/gpu_field.h"
#include "common/units.h"

#include <math.h>
#include <string.h>

/* Limits: CUDA C++ Programming Guide 13.0, "Compute Capabilities", tables
 * "Technical Specifications" and "Arithmetic Instructions". Tensor cores:
 * dense operations a clock and SM, from the white papers of GV100, TU102,
 * GA100, GA102, AD102, GH100 and the RTX Blackwell architecture; of 10.0, from
 * the B200's datasheet peaks over its SMs and clock. */
static const struct capability {
    uint32_t major, minor;
    uint32_t threads_per_sm, blocks_per_sm;
    uint32_t shared_kib, shared_optin_kib, shared_reserved_bytes;
    uint32_t fp32_lanes, fp64_lanes; /* each one multiply-add a clock */
    uint32_t fp64, tf32, fp16, bf16, fp8, int8, fp4; /* tensor cores */
    uint32_t l2_mib;                                 /* of the largest chip */
    uint32_t copy_engines;
} capabilities[] = {
    {7, 0, 2048, 32, 96, 96, 0, 64, 32, 0, 0, 1024, 0, 0, 0, 0, 6, 6},
    {7, 5, 1024, 16, 64, 64, 0, 64, 2, 0, 0, 1024, 0, 0, 2048, 0, 6, 3},
    {8, 0, 2048, 32, 164, 163, 1024, 64, 32, 128, 1024, 2048, 2048, 0, 4096, 0,
     40, 3},
    {8, 6, 1536, 16, 100, 99, 1024, 128, 2, 0, 512, 1024, 1024, 0, 2048, 0, 6,
     2},
    {8, 9, 1536, 24, 100, 99, 1024, 128, 2, 0, 512, 1024, 1024, 2048, 2048, 0,
     96, 2},
    {9, 0, 2048, 32, 228, 227, 1024, 128, 64, 256, 2048, 4096, 4096, 8192, 8192,
     0, 50, 3},
    {10, 0, 2048, 32, 228, 227, 1024, 128, 64, 128, 4096, 8192, 8192, 16384,
     16384, 32768, 126, 3},
    {12, 0, 1536, 24, 100, 99, 1024, 128, 2, 0, 512, 1024, 1024, 2048, 2048,
     4096, 128, 2},
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

/* A bus of a guessed width would be worse than none: only clock and width
 * together give the bandwidth, and the other way round. */
static void default_memory(struct gpu *gpu)
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
    default_u32(&gpu->smi_memory_mib,
                (uint32_t)((gpu->memory_bytes + MIB - 1) / MIB));
    default_u32(&gpu->ecc, 0);
}

/* data/gpus/README.md, "Context", has the rule's derivation. The driver sets
 * aside cudaLimitStackSize (1 KiB) for each thread that can be resident. */
static void default_context(struct gpu *gpu)
{
    uint64_t stacks = (uint64_t)gpu->sm_count * gpu->max_threads_per_sm * KIB;

    default_u64(&gpu->context_bytes, 200 * MIB + stacks);
    default_u64(&gpu->context_torch_bytes, gpu->context_bytes);
}

static void default_links(const struct capability *row, struct gpu *gpu)
{
    default_u32(&gpu->copy_engines, row->copy_engines);
    default_u64(&gpu->l2_bytes, row->l2_mib * MIB);
    if (gpu->nvlink_gbps < 0)
        gpu->nvlink_gbps = 0;
    default_u32(&gpu->nvlink_links, 0);
    default_u32(&gpu->pcie_generation, row->major >= 9   ? 5
                                       : row->major == 8 ? 4
                                                         : 3);
    default_u32(&gpu->pcie_lanes, 16);
    default_u32(&gpu->power_watts, 300);
}

void gpu_field_defaults(struct gpu *gpu)
{
    const struct capability *row = capability_of(gpu);

    if (!gpu->device_name[0])
        memcpy(gpu->device_name, gpu->name, sizeof gpu->name);
    default_limits(row, gpu);
    default_u32(&gpu->clock_base_mhz, gpu->clock_boost_mhz);
    default_peaks(row, gpu);
    default_memory(gpu);
    default_context(gpu);
    default_links(row, gpu);
}
