/* SPDX-License-Identifier: Apache-2.0
 * The rules against what NCCL was seen to take: data/gpus/README.md, "NCCL". */
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/catalogue/nccl_memory.h"
#include "common/base/units.h"
#include "check.h"

static struct gpu card(const char *name)
{
    struct gpu gpu = {0};
    struct err err = {""};

    if (gpu_load(name, &gpu, &err))
        CHECK_FAIL("%s", err.text);
    return gpu;
}

static uint64_t part(const char *name, enum nccl_memory_part part,
                     uint32_t version, uint32_t rank, uint32_t ranks,
                     uint32_t local)
{
    struct gpu gpu = card(name);

    return nccl_memory_part(&gpu,
                            &(const struct nccl_memory){.version = version,
                                                        .rank = rank,
                                                        .ranks = ranks,
                                                        .local_ranks = local},
                            part);
}

static uint64_t all_parts(const char *name, uint32_t version, uint32_t rank,
                          uint32_t ranks)
{
    uint64_t bytes = 0;

    for (enum nccl_memory_part p = 0; p < NCCL_MEMORY_PARTS; p++)
        bytes += part(name, p, version, rank, ranks, ranks);
    return bytes;
}

/* NVIDIA/nccl#964: rank 0 of two, and of three or four, on A100s, mid-2023. */
TEST(a100_communicators_of_2023_are_equal_to_the_mebibyte)
{
    CHECK_UINT(all_parts("a100-sxm-40gb", 21803, 0, 2), 544 * MIB);
    CHECK_UINT(all_parts("a100-sxm-40gb", 21803, 0, 3), 688 * MIB);
    CHECK_UINT(all_parts("a100-sxm-40gb", 21803, 0, 4), 688 * MIB);
    CHECK_UINT(all_parts("a100-sxm-40gb", 21803, 1, 4), 832 * MIB);
}

/* "N coll channels" in published NCCL_DEBUG=INFO logs. */
TEST(channels_are_those_of_logs)
{
    static const struct {
        const char *name;
        uint32_t channels;
    } logs[] = {{"v100-sxm2-32gb", 12}, {"a100-sxm-80gb", 24},
                {"a800-sxm-80gb", 16},  {"h100-sxm-80gb", 24},
                {"b200", 32},           {"l40s", 2}};

    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++)
        CHECK_UINT(card(logs[i].name).nccl_channels, logs[i].channels);
}

static uint64_t peer(const char *name, uint32_t local, bool send)
{
    struct gpu gpu = card(name);

    return nccl_memory_peer(&gpu,
                            &(const struct nccl_memory){.version = 22809,
                                                        .ranks = 8,
                                                        .local_ranks = local},
                            send);
}

/* NVIDIA/nccl#1685: buffers of 10,485,760 and 2,097,152 bytes in 32 channels
 * for each pair of H100s. A100s read, and halve the difference. On two p5 nodes
 * a log has "2 p2p channels per peer". */
TEST(a_peer_takes_two_buffers_a_channel)
{
    CHECK_UINT(peer("h100", 8, true), 32 * 2097152);
    CHECK_UINT(peer("h100", 8, false), 32 * 10485760);
    CHECK_UINT(peer("h100", 4, true), 2 * 2097152);
    CHECK_UINT(peer("a100-sxm-80gb", 8, true), 32 * 6 * MIB);
    CHECK_UINT(peer("a100-sxm-80gb", 8, false), 32 * 6 * MIB);
    CHECK_UINT(peer("l40s", 8, true), 2 * 2 * MIB);
}

/* vllm-project/vllm#9699: nvlsTotalSize of eight H200 under NCCL 2.20. */
TEST(nvls_buffers_are_those_of_a_log)
{
    CHECK_UINT(part("h200", NCCL_MEMORY_NVLS, 22005, 0, 8, 8), 2415919104);
    CHECK_UINT(part("h200", NCCL_MEMORY_NVLS, 22105, 0, 8, 8), 1152 * MIB);
    CHECK_UINT(part("h200", NCCL_MEMORY_NVLS, 22809, 0, 8, 8), 256 * MIB);
    CHECK_UINT(part("b200", NCCL_MEMORY_NVLS, 22809, 0, 8, 8), 384 * MIB);
    CHECK_UINT(part("h200", NCCL_MEMORY_NVLS, 22809, 0, 2, 2), 0);
    CHECK_UINT(part("a100", NCCL_MEMORY_NVLS, 22809, 0, 8, 8), 0);
    CHECK_UINT(part("l40s", NCCL_MEMORY_NVLS, 22809, 0, 8, 8), 0);
}

TEST(sends_to_other_machines_share_their_buffers)
{
    CHECK_UINT(part("h100", NCCL_MEMORY_NET, 22809, 0, 16, 8), 128 * MIB);
    CHECK_UINT(part("h100", NCCL_MEMORY_NET, 22809, 0, 8, 8), 0);
    CHECK_UINT(part("h100", NCCL_MEMORY_NET, 22105, 0, 16, 8), 64 * MIB);
}

TEST(a_bridge_is_no_mesh)
{
    CHECK_UINT(part("a100-pcie-80gb", NCCL_MEMORY_RING, 22809, 0, 8, 8),
               24 * MIB);
    CHECK_UINT(part("h100-nvl-94gb", NCCL_MEMORY_NVLS, 22809, 0, 8, 8), 0);
}
