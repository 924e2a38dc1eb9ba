/* SPDX-License-Identifier: Apache-2.0 */
#include "common/catalogue/gpu_field.h"
#include "common/catalogue/gpu.h"

#include <string.h>

#define MEMBER(m) offsetof(struct gpu, m), sizeof((struct gpu *)0)->m
#define TEXT(m)                                                                \
    {                                                                          \
#m, GPU_TEXT, MEMBER(m), 0, 0                                          \
    }
#define U32(m, min, max)                                                       \
    {                                                                          \
#m, GPU_U32, MEMBER(m), min, max                                       \
    }
#define U64(m, min, max)                                                       \
    {                                                                          \
#m, GPU_U64, MEMBER(m), min, max                                       \
    }
#define NUMBER(m, max)                                                         \
    {                                                                          \
#m, GPU_NUMBER, MEMBER(m), 0, max                                      \
    }
#define POSITIVE(m, max)                                                       \
    {                                                                          \
#m, GPU_NUMBER, MEMBER(m), 1e-3, max                                   \
    }

const struct gpu_field gpu_fields[] = {
    TEXT(name),
    TEXT(device_name),
    {"compute_capability", GPU_CAPABILITY, MEMBER(capability_major), 0, 0},
    U64(memory_bytes, 0x1p20, 0x1p48),
    U32(smi_memory_mib, 1, 1 << 28),
    U64(context_bytes, 0, 0x1p40),
    U64(context_torch_bytes, 0, 0x1p40),
    U64(context_driver_bytes, 0, 0x1p40),
    U64(modules_eager_bytes, 0, 0x1p40),
    U64(cublas_bytes, 0, 0x1p40),
    U64(cudnn_bytes, 0, 0x1p40),
    U64(cufft_bytes, 0, 0x1p40),
    U64(cufft_plan_bytes, 0, 0x1p40),
    U64(cusparse_bytes, 0, 0x1p40),
    U64(cusolver_bytes, 0, 0x1p40),
    U64(cusolver_first_bytes, 0, 0x1p40),
    U64(streams_bytes, 0, 0x1p40),
    U64(managed_bytes, 0, 0x1p40),
    U64(nccl_first_bytes, 0, 0x1p40),
    U64(nccl_bytes, 0, 0x1p40),
    U32(nccl_channels, 1, 64),
    U32(ecc, 0, 1),
    U32(sm_count, 1, 4096),
    U32(clock_base_mhz, 1, 20000),
    U32(clock_boost_mhz, 1, 20000),
    U32(clock_load_mhz, 1, 20000),
    U32(clock_memory_mhz, 1, 100000),
    U32(memory_bus_bits, 1, 1 << 17),
    POSITIVE(memory_gbps, 1e6),
    U64(l2_bytes, 0, 0x1p40),
    U32(copy_engines, 1, 64),
    NUMBER(fp64_tflops, 1e6),
    NUMBER(fp64_tensor_tflops, 1e6),
    POSITIVE(fp32_tflops, 1e6),
    NUMBER(tf32_tflops, 1e6),
    NUMBER(fp16_tflops, 1e6),
    NUMBER(bf16_tflops, 1e6),
    NUMBER(fp8_tflops, 1e6),
    NUMBER(int8_tops, 1e6),
    NUMBER(fp4_tflops, 1e6),
    NUMBER(nvlink_gbps, 1e6),
    U32(nvlink_links, 0, 256),
    U32(pcie_generation, 1, 16),
    U32(pcie_lanes, 1, 64),
    U32(power_watts, 1, 100000),
    U32(idle_watts, 1, 100000),
    U32(warp_size, 32, 32),
    U32(max_threads_per_block, 32, 65536),
    U32(max_threads_per_sm, 32, 65536),
    U32(max_blocks_per_sm, 1, 65536),
    U32(registers_per_block, 32, 1 << 24),
    U32(registers_per_sm, 32, 1 << 24),
    U32(shared_per_block_bytes, 0, 1 << 28),
    U32(shared_per_block_optin_bytes, 0, 1 << 28),
    U32(shared_per_sm_bytes, 0, 1 << 28),
    U32(shared_reserved_bytes, 0, 1 << 20),
    U32(fp32_lanes_per_sm, 1, 65536),
};

const size_t gpu_field_count = sizeof gpu_fields / sizeof *gpu_fields;

/* Numbers that no file can say, since each is outside its field's range. */
static const uint32_t unknown_u32 = UINT32_MAX;
static const uint64_t unknown_u64 = UINT64_MAX;
static const double unknown_number = -1;

const struct gpu_field *gpu_field_find(const char *key)
{
    for (size_t i = 0; i < gpu_field_count; i++)
        if (!strcmp(gpu_fields[i].key, key))
            return &gpu_fields[i];
    return NULL;
}

/* What an unknown FIELD holds, and in *SIZE how many bytes of it tell; NULL
 * for texts and capabilities, whose unknown is zero. */
static const void *field_unknown(const struct gpu_field *field)
{
    switch (field->kind) {
    case GPU_U32:
        return &unknown_u32;
    case GPU_U64:
        return &unknown_u64;
    case GPU_NUMBER:
        return &unknown_number;
    default:
        return NULL;
    }
}

void gpu_field_forget(const struct gpu_field *field, struct gpu *gpu)
{
    const void *unknown = field_unknown(field);
    char *at = (char *)gpu + field->offset;

    if (unknown)
        memcpy(at, unknown, field->size);
    else
        memset(at, 0, field->size);
}

bool gpu_field_known(const struct gpu_field *field, const struct gpu *gpu)
{
    const void *unknown = field_unknown(field);
    const char *at = (const char *)gpu + field->offset;

    return unknown ? memcmp(at, unknown, field->size) != 0 : *at != 0;
}
