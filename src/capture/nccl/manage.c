/* SPDX-License-Identifier: Apache-2.0
 * What NCCL 2.29 and 2.30 add to communicators: more ranks, memory that is
 * given back for a while, and how much that is. The headers that memsim is
 * built with may be older. */
#include "capture/nccl/window.h"

#include <string.h>

#include "capture/core/run/process.h"

enum { /* ncclCommMemStat_t */
    STAT_TOTAL,
    STAT_PERSISTENT,
    STAT_SUSPENDABLE,
    STAT_IS_SUSPENDED,
};

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id);
ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id,
                          int rank, ncclComm_t *grown, ncclConfig_t *config);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclCommMemStats(ncclComm_t comm, int stat, uint64_t *value);
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window,
                               void **pointer);

/* The same on all ranks: of those that are there only one makes it and hands it
 * to the new ones, and the others join without it. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *id)
{
    struct communicator *c = communicator_get(comm);

    if (!c || !id)
        return ncclInvalidArgument;
    memset(id, 0, sizeof *id);
    communicator_child_name(c, c->ranks, id->internal);
    return ncclSuccess;
}

ncclResult_t ncclCommGrow(ncclComm_t comm, int ranks, const ncclUniqueId *id,
                          int rank, ncclComm_t *grown, ncclConfig_t *config)
{
    struct communicator *c = comm ? communicator_get(comm) : NULL;
    ncclUniqueId own;

    if ((comm && (!c || ranks <= c->ranks)) || (!comm && !id) || !grown)
        return ncclInvalidArgument;
    if (!id)
        ncclCommGetUniqueId(comm, &own);
    return ncclCommInitRankConfig(grown, ranks, id ? *id : own,
                                  c ? c->rank : rank, config);
}

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags)
{
    struct communicator *c = communicator_get(comm);

    (void)flags;
    if (!c || c->suspended)
        return ncclInvalidArgument;
    c->suspended = true;
    memsim_note("ncclCommSuspend: memsim does not give back the "
                "communicator's memory; what is used later is an upper bound");
    return ncclSuccess;
}

ncclResult_t ncclCommResume(ncclComm_t comm)
{
    struct communicator *c = communicator_get(comm);

    if (!c || !c->suspended)
        return ncclInvalidArgument;
    c->suspended = false;
    return ncclSuccess;
}

ncclResult_t ncclCommMemStats(ncclComm_t comm, int stat, uint64_t *value)
{
    const struct communicator *c = communicator_get(comm);

    if (!c || !value || stat < STAT_TOTAL || stat > STAT_IS_SUSPENDED)
        return ncclInvalidArgument;
    *value = stat == STAT_PERSISTENT     ? 0
             : stat == STAT_IS_SUSPENDED ? c->suspended
                                         : communicator_bytes(c);
    return ncclSuccess;
}

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window,
                               void **pointer)
{
    const struct window *w = window_get(window);

    if (!w || w->comm != comm || !pointer)
        return ncclInvalidArgument;
    *pointer = (void *)w->address;
    return ncclSuccess;
}
