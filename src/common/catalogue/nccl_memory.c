/* SPDX-License-Identifier: Apache-2.0 */
#include "common/catalogue/nccl_memory.h"
#include "common/catalogue/gpu.h"
#include "common/base/units.h"

#include <stddef.h>

#define MAX_CHANNELS 32

/* The slowest NVLink that joins all GPUs of a machine. Bridges join two, some
 * as fast: the files of GPUs that have one give nccl_channels. */
#define MESH_GBPS    100
#define FEW_CHANNELS 2 /* over PCIe, or a network */

/* init.cc, computeBuffSizes, with device.h's NCCL_STEPS of 8: lines of 16 bytes
 * for 512 threads times 8; 120 words for each of 640 threads; 4 MiB. */
#define LL_BYTES     (8 * 512 * 8 * 16)
#define LL128_BYTES  (120 * 640 * 8 * 8)
#define SIMPLE_BYTES (4 * MIB)

/* p2p.cc, p2pSendSetup and p2pRecvSetup: rounded up to CUDA_IPC_MIN, each with
 * a page of counters before the buffers. */
#define UNIT_BYTES (2 * MIB)
#define PAGE_BYTES 4096

static bool is_mesh(const struct gpu *gpu)
{
    return gpu->nccl_channels > FEW_CHANNELS;
}

/* One end of a connection in one channel. GPUs of 8.0 that NVLink joins read
 * from the sender's buffer (paths.cc, ncclTopoCheckP2p), others write into the
 * receiver's. */
static uint64_t end_bytes(const struct gpu *gpu, bool send)
{
    bool read = is_mesh(gpu) && gpu->capability_major == 8 &&
                gpu->capability_minor == 0;
    uint64_t bytes = PAGE_BYTES + (send ? 0 : LL_BYTES + LL128_BYTES);

    if (read == send)
        bytes += SIMPLE_BYTES;
    return (bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
}

/* topo.h: what NCCL takes a link to carry, in GB/s. */
static double link_gbps(const struct gpu *gpu)
{
    return gpu->capability_major >= 10  ? 40.1
           : gpu->capability_major >= 9 ? 20.6
                                        : 20;
}

/* search.cc, speedArrayIntra, sm90... and sm100SpeedArrayIntra: what a channel
 * may be given, fastest first. */
static const double *speeds_of(const struct gpu *gpu)
{
    static const double old[] = {40, 30, 20, 18, 15, 12, 0},
                        sm90[] = {60, 50, 40, 30, 24, 20, 15, 12, 0},
                        sm100[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 0};

    return gpu->capability_major >= 10  ? sm100
           : gpu->capability_major >= 9 ? sm90
                                        : old;
}

/* search.cc, ncclTopoDupChannels: fast channels are halved. */
static uint32_t halve_channels(const struct gpu *gpu, double speed,
                               uint32_t channels)
{
    bool newer = gpu->capability_major * 10 + gpu->capability_minor > 80;

    if (speed < 25 || (newer && speed < 50 && channels > 4))
        return channels;
    return 2 * channels;
}

/* search.cc, ncclTopoCompute: the speed at which channels of it carry most
 * together, the fastest of equals; connect.cc, ncclTopoPostset, doubles their
 * number. V100s are joined pair by pair, by two links at most. */
uint32_t nccl_memory_channels(const struct gpu *gpu)
{
    double total = gpu->nvlink_links * link_gbps(gpu), best = 0;
    uint32_t channels = 1;

    if (gpu->nvlink_gbps < MESH_GBPS)
        return FEW_CHANNELS;
    for (const double *s = speeds_of(gpu); *s > 0; s++) {
        uint32_t fit = (uint32_t)(total / *s);
        if (gpu->capability_major < 8 && *s > link_gbps(gpu))
            continue;
        if (fit * *s > best) {
            best = fit * *s;
            channels = halve_channels(gpu, *s, fit);
        }
    }
    return channels > MAX_CHANNELS / 2 ? MAX_CHANNELS : 2 * channels;
}

/* paths.cc, ncclTopoComputeP2pChannels: a power of two. */
static uint32_t p2p_channels(const struct gpu *gpu)
{
    uint32_t channels = 1;

    while (channels < gpu->nccl_channels)
        channels *= 2;
    return channels;
}

static bool is_alone(const struct nccl_memory *c)
{
    return c->local_ranks == c->ranks;
}

/* paths.cc, ncclTopoGetNchannels: twice the links to a peer, where a switch
 * joins all GPUs as many channels as there are; but two for every peer once
 * one is on another machine. */
uint64_t nccl_memory_peer(const struct gpu *gpu, const struct nccl_memory *comm,
                          bool send)
{
    return (is_alone(comm) ? p2p_channels(gpu) : FEW_CHANNELS) *
           end_bytes(gpu, send);
}

static uint64_t ring_bytes(const struct gpu *gpu)
{
    return gpu->nccl_channels * (end_bytes(gpu, true) + end_bytes(gpu, false));
}

/* Within a machine a tree is the ring's chain: what it needs more is the way
 * back, from the next rank and to the one before. Of two ranks these are one.
 */
static uint64_t tree_bytes(const struct gpu *gpu, const struct nccl_memory *c)
{
    uint64_t bytes = 0;

    if (c->ranks < 3)
        return 0;
    if (c->rank > 0)
        bytes += end_bytes(gpu, true);
    if (c->rank + 1 < c->ranks)
        bytes += end_bytes(gpu, false);
    return gpu->nccl_channels * bytes;
}

/* nvls.cc: from Hopper on, and for three ranks or more
 * (vllm-project/vllm#9699). Two buffers a channel and rank: of 1 MiB and 16 or
 * 24 channels (ncclNvlsBufferSetup); with 2 MiB of flags each, and as many
 * channels as the ring, up to 2.21; and of 4 MiB up to 2.20 (ncclNvlsSetup). */
static uint64_t nvls_bytes(const struct gpu *gpu, const struct nccl_memory *c)
{
    uint64_t channels = gpu->capability_major >= 10 ? 24 : 16, buffer = MIB;

    if (gpu->capability_major < 9 || !is_mesh(gpu) || c->local_ranks < 3)
        return 0;
    if (c->version < NCCL_LAZY_VERSION) {
        channels = gpu->nccl_channels;
        buffer = (c->version < 22100 ? SIMPLE_BYTES : MIB) + 2 * MIB;
    }
    return channels * 2 * buffer * c->local_ranks;
}

/* net.cc, sharedNetBuffersInit: 16 chunks a channel, of 512 KiB where NVLink
 * joins all ranks, else of 128 KiB. Up to 2.21 also where no other machine
 * takes part; later for those that are sent to, and as much again to receive.
 */
static uint64_t net_bytes(const struct gpu *gpu, const struct nccl_memory *c)
{
    uint64_t chunk = (is_alone(c) && is_mesh(gpu) ? 512 : 128) * KIB;
    uint64_t bytes = p2p_channels(gpu) * 16 * chunk;

    if (c->version < NCCL_LAZY_VERSION)
        return bytes;
    return is_alone(c) ? 0 : 2 * bytes;
}

uint64_t nccl_memory_part(const struct gpu *gpu, const struct nccl_memory *comm,
                          enum nccl_memory_part part)
{
    switch (part) {
    case NCCL_MEMORY_RING:
        return ring_bytes(gpu);
    case NCCL_MEMORY_TREE:
        return tree_bytes(gpu, comm);
    case NCCL_MEMORY_NVLS:
        return nvls_bytes(gpu, comm);
    default:
        return net_bytes(gpu, comm);
    }
}
