/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/nccl/gpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/base/buffer.h"
#include "capture/core/memory/device.h"
#include "capture/core/torch/process_group.h"
#include "capture/core/torch/stack.h"
#include "capture/core/base/handle.h"
#include "capture/core/base/log.h"
#include "capture/core/base/pages.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/process.h"
#include "capture/core/run/record.h"
#include "common/base/range.h"

struct communicator *communicator_get(ncclComm_t comm)
{
    return memsim_handle_get(HANDLE_NCCL, comm);
}

uint32_t communicator_stack(const struct communicator *c)
{
    return c->ranks > 1 ? memsim_stack_here() : 0;
}

ncclResult_t nccl_result(int rc)
{
    switch (rc) {
    case CORE_OK:
        return ncclSuccess;
    case CORE_INVALID_VALUE:
    case CORE_INVALID_HANDLE:
        return ncclInvalidArgument;
    default:
        return ncclUnhandledCudaError;
    }
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = nccl_version();
    return ncclSuccess;
}

/* Unique among the processes of this machine, as NCCL's are. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static _Atomic uint64_t count;
    const uint64_t words[] = {(uint64_t)getpid(), memsim_clock_now(), ++count};

    memset(id, 0, sizeof *id);
    memcpy(id, words, sizeof words);
    return ncclSuccess;
}

/* Puts the COUNT MEMBERS behind TEXT as ranges; returns how many, or 0 where
 * they have no place in a record. */
static uint64_t members_append(struct buffer *text, const uint32_t *members,
                               uint32_t count)
{
    struct range range = {0};
    uint64_t ranges = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (range_extend(&range, members[i]))
            continue;
        if (!memsim_buffer_append(text, &range, sizeof range))
            return 0;
        ranges++;
        range = (struct range){members[i], 1, 0};
    }
    if (!memsim_buffer_append(text, &range, sizeof range) ||
        text->used > TRACE_TEXT_MAX)
        return 0;
    return ranges + 1;
}

/* With MEMBERS behind the id, where these are known. */
static void communicator_record(const struct communicator *c,
                                const uint32_t *members)
{
    struct buffer text = {0};

    if (memsim_buffer_append(&text, c->id, NCCL_ID_BYTES)) {
        uint64_t ranges =
            members ? members_append(&text, members, (uint32_t)c->ranks) : 0;
        RECORD_TEXT(COMMUNICATOR, text.bytes,
                    ranges ? text.used : NCCL_ID_BYTES,
                    .device = (uint64_t)c->device, .communicator = (uint64_t)c,
                    .rank = (uint64_t)c->rank, .ranks = (uint64_t)c->ranks,
                    .root = c->root, .ranges = ranges);
    }
    memsim_buffer_free(&text);
}

static ncclResult_t communicator_new(ncclComm_t *comm,
                                     const struct communicator *wanted,
                                     const uint32_t *members)
{
    if (!comm || wanted->ranks < 1 || wanted->rank < 0 ||
        wanted->rank >= wanted->ranks)
        return ncclInvalidArgument;
    int rc = nccl_gpu_open(wanted->device);
    if (!rc)
        rc = nccl_gpu_library(wanted->device, "nccl",
                                   memsim_device_gpu()->nccl_first_bytes);
    if (rc)
        return nccl_result(rc);
    struct communicator *c = memsim_handle_new(HANDLE_NCCL, sizeof *c);
    if (!c)
        return ncclSystemError;
    *c = *wanted;
    c->places = members;
    for (int i = 0; i < c->ranks; i++)
        c->local_ranks += communicator_is_near(c, i);
    memsim_mailbox_open(&c->box, c->id, (uint32_t)c->rank, (uint32_t)c->ranks);
    *comm = (ncclComm_t)c;
    communicator_record(c, members);
    return ncclSuccess;
}

/* Which group of py/groups.py's CONFIG is marked as; PyTorch leaves the field
 * alone, and NCCL 2.18 and later have it. */
static int group_mark(const ncclConfig_t *config)
{
    size_t end = offsetof(ncclConfig_t, splitShare) + sizeof(int);

    return config && config->size >= end ? config->splitShare
                                         : NCCL_CONFIG_UNDEF_INT;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks,
                                    ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    struct communicator wanted = {
        .device = nccl_gpu_current(), .rank = rank, .ranks = ranks};

    memcpy(wanted.id, id.internal, sizeof wanted.id);
    const uint32_t *members =
        memsim_group_named(group_mark(config), (uint32_t)ranks);
    if (!members)
        members = memsim_group_named(GROUP_NEXT_INIT, (uint32_t)ranks);
    ncclResult_t result = communicator_new(comm, &wanted, members);
    if (result == ncclSuccess)
        memsim_process_world((uint32_t)rank, (uint32_t)ranks);
    return result;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id,
                              int rank)
{
    return ncclCommInitRankConfig(comm, ranks, id, rank, NULL);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank,
                                      int count, ncclUniqueId *ids,
                                      ncclConfig_t *config)
{
    return count > 0 ? ncclCommInitRankConfig(comm, ranks, ids[0], rank, config)
                     : ncclInvalidArgument;
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    ncclResult_t result = ncclSuccess;

    for (int i = 0; i < count && result == ncclSuccess; i++)
        result = communicator_new(
            &comms[i],
            &(const struct communicator){
                .device = devices ? devices[i] : i, .rank = i, .ranks = count},
            NULL);
    return result;
}

/* Of PARENT's id, and of which of its children this is. */
void communicator_child_name(struct communicator *parent, int color, char *id)
{
    uint64_t words[] = {0, ++parent->children, (uint32_t)color};

    for (size_t i = 0; i < NCCL_ID_BYTES; i++)
        words[0] = (words[0] ^ (uint8_t)parent->id[i]) *
                   UINT64_C(1099511628211); /* FNV-1a's prime */
    memcpy(id, words, NCCL_ID_BYTES);
}

static void child_name(struct communicator *parent, int color,
                       struct communicator *child)
{
    communicator_child_name(parent, color, child->id);
    child->device = parent->device;
    child->root = parent->root ? parent->root : (uint64_t)parent;
}

/* The COUNT RANKS of PARENT are CHILD's: as the root's, where those are known.
 * -1 where there is no memory. */
static int child_members(const struct communicator *parent,
                         const uint32_t *ranks, uint32_t count,
                         struct communicator *child)
{
    uint32_t *members = memsim_pages_keep(count * sizeof *members);

    if (!members)
        return -1;
    child->ranks = (int)count;
    for (uint32_t i = 0; i < count; i++) {
        if (ranks[i] == (uint32_t)parent->rank)
            child->rank = (int)i;
        members[i] = parent->members ? parent->members[ranks[i]] : ranks[i];
    }
    if (!parent->root || parent->members)
        child->members = members;
    return 0;
}

/* Who else has this color one process does not know, but for what py/groups.py
 * has told: without that the child keeps all ranks, as an upper bound. */
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key,
                           ncclComm_t *child, ncclConfig_t *config)
{
    struct communicator *c = communicator_get(comm);
    struct communicator wanted = {0};
    uint32_t count;

    (void)config;
    if (!c || !child)
        return ncclInvalidArgument;
    *child = NULL;
    child_name(c, color, &wanted);
    if (color == NCCL_SPLIT_NOCOLOR)
        return ncclSuccess;
    wanted.rank = c->rank;
    wanted.ranks = c->ranks;
    const uint32_t *ranks = memsim_group_find(color, (uint32_t)c->rank,
                                              (uint32_t)c->ranks, key, &count);
    if (!ranks)
        memsim_log("ncclCommSplit: which ranks share color %d is not known "
                   "here; the child keeps all",
                   color);
    else if (child_members(c, ranks, count, &wanted))
        return ncclSystemError;
    return communicator_new(child, &wanted, wanted.members);
}

static bool is_listed(const int *list, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (list[i] == rank)
            return true;
    return false;
}

ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int excluded_count,
                            ncclComm_t *child, ncclConfig_t *config, int flags)
{
    struct communicator *c = communicator_get(comm);
    struct communicator wanted = {0};

    (void)config;
    (void)flags;
    if (!c || !child || !excluded || excluded_count < 1 ||
        is_listed(excluded, excluded_count, c->rank))
        return ncclInvalidArgument;
    struct buffer left = {0};
    bool whole = true;
    for (uint32_t i = 0; i < (uint32_t)c->ranks && whole; i++)
        if (!is_listed(excluded, excluded_count, (int)i))
            whole = memsim_buffer_append(&left, &i, sizeof i);
    child_name(c, 0, &wanted);
    if (whole &&
        child_members(c, (const uint32_t *)(const void *)left.bytes,
                      (uint32_t)(left.used / sizeof(uint32_t)), &wanted))
        whole = false;
    memsim_buffer_free(&left);
    return whole ? communicator_new(child, &wanted, wanted.members)
                 : ncclSystemError;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    return communicator_get(comm) ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    struct communicator *c = communicator_get(comm);

    if (!c)
        return ncclInvalidArgument;
    communicator_disconnect(c);
    exchange_end(c);
    memsim_handle_free(HANDLE_NCCL, comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    *error = ncclSuccess;
    return ncclCommFinalize(comm);
}

#define GET(name, field)                                                       \
    ncclResult_t name(const ncclComm_t comm, int *value)                       \
    {                                                                          \
        const struct communicator *c = communicator_get(comm);                 \
                                                                               \
        if (!c)                                                                \
            return ncclInvalidArgument;                                        \
        *value = c->field;                                                     \
        return ncclSuccess;                                                    \
    }
GET(ncclCommCount, ranks)
GET(ncclCommCuDevice, device)
GET(ncclCommUserRank, rank)

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };

    return (unsigned)result < sizeof texts / sizeof *texts
               ? texts[result]
               : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return "";
}
