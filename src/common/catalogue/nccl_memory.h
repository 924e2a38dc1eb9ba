/* SPDX-License-Identifier: Apache-2.0
 * What NCCL takes of a GPU for its buffers, by the rules of its own source
 * (NVIDIA/nccl, v2.28.9-1; older versions where it says so).
 * data/gpus/README.md, "NCCL", has the published measurements that the rules
 * were held against. */
#ifndef MEMSIM_COMMON_CATALOGUE_NCCL_MEMORY_H
#define MEMSIM_COMMON_CATALOGUE_NCCL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;

/* From this version on a communicator makes the buffers of an algorithm when a
 * call first uses it (init.cc, NCCL_RUNTIME_CONNECT); before, of all at once.
 */
#define NCCL_LAZY_VERSION 22200

/* A communicator as one rank sees it. */
struct nccl_memory {
    uint32_t version; /* as ncclGetVersion says: 22809 */
    uint32_t rank, ranks;
    uint32_t local_ranks; /* of those, on this machine */
};

/* What has buffers of its own. */
enum nccl_memory_part {
    NCCL_MEMORY_RING,
    NCCL_MEMORY_TREE,
    NCCL_MEMORY_NVLS, /* NVLink SHARP, through the switch */
    NCCL_MEMORY_NET,  /* shared by all sends to other machines */
    NCCL_MEMORY_PARTS,
};

/* The bytes that PART takes; 0 where this communicator does without it. */
uint64_t nccl_memory_part(const struct gpu *gpu, const struct nccl_memory *comm,
                          enum nccl_memory_part part);

/* The bytes for a first ncclSend (SEND) to, or ncclRecv from, another rank of
 * this machine: what an all-to-all takes once for each peer. */
uint64_t nccl_memory_peer(const struct gpu *gpu, const struct nccl_memory *comm,
                          bool send);

/* The channels of a ring between all GPUs of a machine. */
uint32_t nccl_memory_channels(const struct gpu *gpu);

#endif
