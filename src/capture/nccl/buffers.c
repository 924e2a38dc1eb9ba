/* SPDX-License-Identifier: Apache-2.0
 * What a communicator takes of its GPU, and when (nccl_memory.h). */
#include "capture/nccl/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "capture/core/memory/device.h"
#include "capture/core/base/pages.h"
#include "capture/core/torch/torch.h"
#include "common/base/text_begins.h"
#include "common/catalogue/gpu.h"

/* A GPU's file may say what a communicator takes: then that is all. */
#define USES_GIVEN (1u << NCCL_MEMORY_PARTS)

static const char given[] = "nccl communicator";
static const char *const owners[NCCL_MEMORY_PARTS] = {
    [NCCL_MEMORY_RING] = "nccl ring",
    [NCCL_MEMORY_TREE] = "nccl tree",
    [NCCL_MEMORY_NVLS] = "nccl nvls",
    [NCCL_MEMORY_NET] = "nccl net",
};
static const char sends[] = "nccl send", receives[] = "nccl receive";

/* The wheels' own metadata: Requires-Dist of nvidia-nccl-cu12 and -cu13. */
int nccl_version(void)
{
    static const struct {
        const char *torch;
        int nccl;
    } bundled[] = {
        {"2.4.", 22005},  {"2.5.", 22105},  {"2.6.", 22105},  {"2.7.", 22602},
        {"2.8.", 22703},  {"2.9.", 22705},  {"2.10.", 22705}, {"2.12.", 22907},
        {"2.13.", 22907}, {"2.14.", 23007}, {"2.15.", 23007},
    };
    const char *torch = memsim_torch_version();

    for (size_t i = 0; i < sizeof bundled / sizeof *bundled; i++)
        if (text_begins(torch, bundled[i].torch))
            return bundled[i].nccl;
    return 22809; /* 2.11's */
}

/* As torchrun says it, or machines of eight GPUs. */
static uint32_t ranks_a_machine(void)
{
    const char *text = getenv("LOCAL_WORLD_SIZE");
    unsigned long ranks = text ? strtoul(text, NULL, 10) : 0;

    return ranks > 0 && ranks < UINT32_MAX ? (uint32_t)ranks : 8;
}

bool communicator_is_near(const struct communicator *c, int rank)
{
    uint32_t machine = ranks_a_machine();
    uint32_t own = c->places ? c->places[c->rank] : (uint32_t)c->rank;
    uint32_t other = c->places ? c->places[rank] : (uint32_t)rank;

    return own / machine == other / machine;
}

static struct nccl_memory memory_of(const struct communicator *c)
{
    return (struct nccl_memory){
        .version = (uint32_t)nccl_version(),
        .rank = (uint32_t)c->rank,
        .ranks = (uint32_t)c->ranks,
        .local_ranks = (uint32_t)c->local_ranks,
    };
}

static ncclResult_t part_take(struct communicator *c, unsigned part)
{
    struct nccl_memory memory = memory_of(c);

    if (c->uses >> part & 1)
        return ncclSuccess;
    c->uses |= 1u << part;
    return nccl_result(nccl_gpu_object(
        c->device, owners[part],
        nccl_memory_part(memsim_device_gpu(), &memory, part)));
}

ncclResult_t communicator_connect(struct communicator *c, uint32_t uses)
{
    uint64_t bytes = memsim_device_gpu()->nccl_bytes;
    ncclResult_t result = ncclSuccess;

    if (c->ranks < 2 || c->uses & USES_GIVEN)
        return ncclSuccess;
    if (bytes) {
        c->uses |= USES_GIVEN;
        return nccl_result(
            nccl_gpu_object(c->device, given, bytes));
    }
    if (nccl_version() < NCCL_LAZY_VERSION)
        uses = (1u << NCCL_MEMORY_PARTS) - 1;
    for (unsigned part = 0; part < NCCL_MEMORY_PARTS && !result; part++)
        if (uses >> part & 1)
            result = part_take(c, part);
    return result;
}

static ncclResult_t peer_meet(struct communicator *c, int peer,
                              uint8_t directions)
{
    uint8_t fresh = directions & (uint8_t)~c->peers[peer];
    const struct gpu *gpu = memsim_device_gpu();
    struct nccl_memory memory = memory_of(c);
    int rc = 0;

    if (peer == c->rank)
        return ncclSuccess;
    if (!communicator_is_near(c, peer))
        return part_take(c, NCCL_MEMORY_NET);
    c->peers[peer] |= fresh;
    if (fresh & SENDS)
        rc = nccl_gpu_object(c->device, sends,
                                          nccl_memory_peer(gpu, &memory, true));
    if (!rc && fresh & RECEIVES)
        rc = nccl_gpu_object(
            c->device, receives, nccl_memory_peer(gpu, &memory, false));
    return nccl_result(rc);
}

ncclResult_t communicator_meet(struct communicator *c, int peer,
                               uint8_t directions)
{
    int from = peer < 0 ? 0 : peer, to = peer < 0 ? c->ranks - 1 : peer;
    ncclResult_t result = ncclSuccess;

    if (peer >= c->ranks)
        return ncclInvalidArgument;
    if (c->ranks < 2 || c->uses & USES_GIVEN)
        return ncclSuccess;
    if (!c->peers && !(c->peers = memsim_pages_keep((size_t)c->ranks)))
        return ncclSystemError;
    for (int i = from; i <= to && !result; i++)
        result = peer_meet(c, i, directions);
    return result;
}

uint64_t communicator_bytes(const struct communicator *c)
{
    const struct gpu *gpu = memsim_device_gpu();
    struct nccl_memory memory = memory_of(c);
    uint64_t bytes = c->uses & USES_GIVEN ? gpu->nccl_bytes : 0;

    for (unsigned part = 0; part < NCCL_MEMORY_PARTS; part++)
        if (c->uses >> part & 1)
            bytes += nccl_memory_part(gpu, &memory, part);
    for (int i = 0; c->peers && i < c->ranks; i++) {
        if (c->peers[i] & SENDS)
            bytes += nccl_memory_peer(gpu, &memory, true);
        if (c->peers[i] & RECEIVES)
            bytes += nccl_memory_peer(gpu, &memory, false);
    }
    return bytes;
}

void communicator_disconnect(const struct communicator *c)
{
    if (c->uses & USES_GIVEN)
        nccl_gpu_object_end(c->device, given);
    for (unsigned part = 0; part < NCCL_MEMORY_PARTS; part++)
        if (c->uses >> part & 1)
            nccl_gpu_object_end(c->device, owners[part]);
    for (int i = 0; c->peers && i < c->ranks; i++) {
        if (c->peers[i] & SENDS)
            nccl_gpu_object_end(c->device, sends);
        if (c->peers[i] & RECEIVES)
            nccl_gpu_object_end(c->device, receives);
    }
}
