/* SPDX-License-Identifier: Apache-2.0
 * What a program asks on the host before its own kernels talk to other ranks
 * (nccl_device.h, NCCL 2.28 to 2.30). An LSA team is the ranks of a machine,
 * which reach each other's memory by loads and stores. */
#include "capture/nccl/window.h"

#include <string.h>

#include "capture/core/memory/device.h"

#define PROPERTIES_MAGIC 0xcafebeefu /* NCCL_API_MAGIC */

/* ncclCommProperties_t of NCCL 2.30; SIZE is what the caller's has. */
struct properties {
    size_t size;
    unsigned magic, version;
    int rank, ranks, device, nvml_device;
    bool device_api, multimem;
    int gin_type, lsa_teams;
    bool host_rma;
    int railed_gin_type;
};

struct team { /* ncclTeam_t */
    int ranks, rank, stride;
};

struct team ncclTeamWorld(ncclComm_t comm);
struct team ncclTeamLsa(ncclComm_t comm);
struct team ncclTeamRail(ncclComm_t comm);
int ncclTeamRankToWorld(ncclComm_t comm, struct team team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, struct team team, int rank);
ncclResult_t ncclCommQueryProperties(ncclComm_t comm,
                                     struct properties *properties);
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset,
                                     int rank, void **pointer);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset,
                                      int peer, void **pointer);
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset,
                                             void **pointer);
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements,
                               void *made);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *made);

/* --- teams ---------------------------------------------------------------- */

/* The place of RANK among the ranks of this machine; -1: it is on another. */
static int lsa_place(const struct communicator *c, int rank)
{
    int place = 0;

    if (rank < 0 || rank >= c->ranks || !communicator_is_near(c, rank))
        return -1;
    for (int i = 0; i < rank; i++)
        place += communicator_is_near(c, i);
    return place;
}

struct team ncclTeamWorld(ncclComm_t comm)
{
    const struct communicator *c = communicator_get(comm);

    return c ? (struct team){c->ranks, c->rank, 1} : (struct team){0, 0, 0};
}

struct team ncclTeamLsa(ncclComm_t comm)
{
    const struct communicator *c = communicator_get(comm);

    return c ? (struct team){c->local_ranks, lsa_place(c, c->rank), 1}
             : (struct team){0, 0, 0};
}

/* The ranks with this one's place in their teams. */
struct team ncclTeamRail(ncclComm_t comm)
{
    struct team world = ncclTeamWorld(comm), lsa = ncclTeamLsa(comm);

    return lsa.ranks ? (struct team){world.ranks / lsa.ranks,
                                     world.rank / lsa.ranks, lsa.ranks}
                     : lsa;
}

int ncclTeamRankToWorld(ncclComm_t comm, struct team team, int rank)
{
    return ncclTeamWorld(comm).rank + (rank - team.rank) * team.stride;
}

int ncclTeamRankToLsa(ncclComm_t comm, struct team team, int rank)
{
    return ncclTeamLsa(comm).rank + (rank - team.rank) * team.stride;
}

/* As where all GPUs of a machine reach each other, and NICs reach GPUs. */
ncclResult_t ncclCommQueryProperties(ncclComm_t comm,
                                     struct properties *properties)
{
    const struct communicator *c = communicator_get(comm);
    struct properties p;

    if (!c || !properties)
        return ncclInvalidArgument;
    if (properties->magic != PROPERTIES_MAGIC)
        return ncclInvalidUsage;
    p = (struct properties){
        .size = properties->size,
        .magic = properties->magic,
        .version = properties->version,
        .rank = c->rank,
        .ranks = c->ranks,
        .device = c->device,
        .nvml_device = memsim_device_physical(c->device),
        .device_api = true,
        .lsa_teams = (c->ranks + c->local_ranks - 1) / c->local_ranks,
        .host_rma = true};
    memcpy(properties, &p, p.size < sizeof p ? p.size : sizeof p);
    return ncclSuccess;
}

/* --- pointers ------------------------------------------------------------- */

/* Windows of a machine lie side by side, and only the own one has memory here.
 */
static ncclResult_t place_pointer(struct window *w, int place, uint64_t offset,
                                  void **pointer)
{
    const struct communicator *c = communicator_get(w->comm);
    uint64_t stride = (w->bytes + 511) / 512 * 512;

    if (offset > w->bytes)
        return ncclInvalidArgument;
    if (place == lsa_place(c, c->rank)) {
        *pointer = (void *)(w->address + offset);
        return ncclSuccess;
    }
    if (!w->peers)
        w->peers = memsim_device_import(c->device,
                                        stride * (uint64_t)c->local_ranks);
    if (!w->peers)
        return ncclSystemError;
    *pointer = (void *)(w->peers + (uint64_t)place * stride + offset);
    return ncclSuccess;
}

ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset,
                                     int rank, void **pointer)
{
    struct window *w = window_get(window);

    if (!w || !pointer || rank < 0 ||
        rank >= communicator_get(w->comm)->local_ranks)
        return ncclInvalidArgument;
    return place_pointer(w, rank, offset, pointer);
}

/* NULL for a rank of another machine. */
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset,
                                      int peer, void **pointer)
{
    struct window *w = window_get(window);

    if (!w || !pointer || peer < 0 || peer >= communicator_get(w->comm)->ranks)
        return ncclInvalidArgument;
    int place = lsa_place(communicator_get(w->comm), peer);
    *pointer = NULL;
    return place < 0 ? ncclSuccess : place_pointer(w, place, offset, pointer);
}

/* NULL, as where NVLink's switches do not multicast. */
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset,
                                             void **pointer)
{
    const struct window *w = window_get(window);

    if (!w || !pointer || offset > w->bytes)
        return ncclInvalidArgument;
    *pointer = NULL;
    return ncclSuccess;
}

/* --- a communicator for kernels ------------------------------------------- */

/* No kernel reads it here. Its buffers for barriers, a few KiB of what NCCL has
 * reserved, are not counted. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const void *requirements,
                               void *made)
{
    return communicator_get(comm) && requirements && made ? ncclSuccess
                                                          : ncclInvalidArgument;
}

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const void *made)
{
    return communicator_get(comm) && made ? ncclSuccess : ncclInvalidArgument;
}
