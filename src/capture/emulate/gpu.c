/* SPDX-License-Identifier: Apache-2.0
 * NCCL on a real GPU, one rank of many: the others send what this one sends,
 * and come when this one does, or later by what --stragglers says. */
#include "capture/nccl/gpu.h"

#include <cuda_runtime_api.h>

#include "capture/core/memory/device.h"
#include "capture/core/run/record.h"
#include "capture/core/work/submit.h"
#include "capture/emulate/kernel.h"
#include "capture/emulate/memory.h"
#include "capture/emulate/price.h"
#include "capture/nccl/operation.h"
#include "capture/real/card.h"
#include "capture/real/tap.h"

int nccl_gpu_current(void)
{
    int device = card_current();

    if (device < 0 && !REAL_FUNCTION(cudaFree)(NULL))
        device = card_current();
    return device;
}

int nccl_gpu_open(int device)
{
    return device >= 0 ? CORE_OK : CORE_NO_DEVICE;
}

/* The driver itself checks the stream. */
int nccl_gpu_of_stream(uint64_t stream, int *device)
{
    (void)stream;
    *device = nccl_gpu_current();
    return nccl_gpu_open(*device);
}

int nccl_gpu_library(int device, const char *who, uint64_t bytes)
{
    return memory_take(device, who, bytes, true);
}

int nccl_gpu_object(int device, const char *who, uint64_t bytes)
{
    return memory_take(device, who, bytes, false);
}

void nccl_gpu_object_end(int device, const char *who)
{
    memory_end(device, who);
}

/* --- what is moved -------------------------------------------------------- */

static bool is_root(const struct nccl_call *call, const struct communicator *c)
{
    return call->exchange.root == EXCHANGE_ALL ||
           call->exchange.root == c->rank;
}

/* By what a rank's numbers become those of all ranks together. */
static double factor_of(const struct nccl_call *call,
                        const struct communicator *c)
{
    const struct exchange *e = &call->exchange;
    struct reduction r = nccl_reduction(e->operation, e->type, e->count);

    if (e->operation == ncclAvg || r.kind != REDUCE_SUM)
        return 1;
    return r.scale * c->ranks;
}

/* This rank's broadcast of this thread's group, if there is one: a group of
 * broadcasts, one from each rank in turn, gathers unequal shares, and the other
 * ranks send what this one, the first, sends. */
static _Thread_local struct exchange own_broadcast;

static uint64_t broadcast_source(const struct exchange *e,
                                 const struct communicator *c)
{
    const struct exchange *own = &own_broadcast;

    if (e->root == c->rank)
        own_broadcast = *e;
    return e->in_group && own->comm == e->comm && own->share == e->share &&
                   own->number + (uint64_t)(e->root - c->rank) == e->number
               ? own->send
               : 0;
}

/* What this rank gets from its peers, who send what it sends. From a root that
 * is another rank, and in a message, it gets nothing: its buffer stays. */
static void moved(const struct nccl_call *call, const struct communicator *c,
                  struct emulated *k)
{
    const struct exchange *e = &call->exchange;
    uint64_t own = (uint64_t)c->rank * e->share;

    *k = (struct emulated){.stream = e->stream,
                           .send = e->send,
                           .receive = e->receive,
                           .count = e->count,
                           .shares = is_root(call, c),
                           .type = e->type,
                           .factor = 1};
    switch (e->shape) {
    case SHAPE_REDUCE:
        k->factor = factor_of(call, c);
        break;
    case SHAPE_REDUCE_SCATTER:
        k->factor = factor_of(call, c);
        k->send += own;
        break;
    case SHAPE_GATHER:
        k->shares *= (uint64_t)c->ranks;
        break;
    case SHAPE_SCATTER:
        k->send += own;
        break;
    case SHAPE_ALL_TO_ALL:
        k->send += own;
        k->shares = (uint64_t)c->ranks;
        break;
    case SHAPE_BROADCAST:
        k->send = e->root == c->rank ? e->send : 0;
        uint64_t source = broadcast_source(e, c);
        if (source)
            k->send = source;
        k->shares = k->send != 0;
        break;
    case SHAPE_SEND:
    case SHAPE_RECEIVE:
        k->shares = 0;
    }
}

/* Whether K would write what is there, or has no place for it. */
static bool moves_nothing(const struct emulated *k)
{
    bool in_place = k->receive == k->send && k->factor == 1 && k->shares < 2;

    return !k->receive || !k->send || in_place;
}

/* --- calls ---------------------------------------------------------------- */

/* The messages of this thread's group, which NCCL sends at the same time. */
static _Thread_local struct held {
    bool some;
    struct nccl_call call; /* the first */
    const struct communicator *comm;
    uint64_t in_bytes, out_bytes;
} held;

static ncclResult_t launch(const struct communicator *c,
                           const struct nccl_call *call)
{
    struct emulated k;
    struct emulated_price price;

    moved(call, c, &k);
    if (moves_nothing(&k))
        k.shares = 0;
    emulated_price(c, call, &price);
    k.ns = price.ns;
    k.nodes = price.nodes;
    k.lag = price.lag;
    k.blocks = memsim_device_gpu()->nccl_channels;
    k.blocks += !k.blocks;
    if (!k.ns && !k.shares)
        return ncclSuccess;
    return kernel_launch(c->device, &k) ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t carry(const struct communicator *c,
                          const struct nccl_call *call, bool launches)
{
    struct real_call passed;
    ncclResult_t result = ncclSuccess;

    real_enter(&passed);
    if (launches)
        result = launch(c, call);
    if (!result && passed.outer &&
        tap_begin(&passed, call->exchange.stream) >= 0)
        memsim_submit(TRACE_COLLECTIVE, (const uint64_t *)&call->record,
                      TRACE_WORD_COUNT(COLLECTIVE), NULL, 0);
    real_leave(&passed);
    return result;
}

static bool is_message(const struct nccl_call *call)
{
    return call->exchange.shape == SHAPE_SEND ||
           call->exchange.shape == SHAPE_RECEIVE;
}

static void hold(const struct communicator *c, const struct nccl_call *call)
{
    if (!held.some)
        held = (struct held){.some = true, .call = *call, .comm = c};
    if (call->exchange.shape == SHAPE_SEND)
        held.out_bytes += call->exchange.share;
    else
        held.in_bytes += call->exchange.share;
}

ncclResult_t nccl_gpu_call(struct communicator *c, const struct nccl_call *call)
{
    bool holds = call->exchange.in_group && is_message(call);

    if (holds && held.some && held.comm != c) {
        ncclResult_t result = nccl_gpu_group_end();
        if (result)
            return result;
    }
    if (holds)
        hold(c, call);
    return carry(c, call, !holds);
}

/* One kernel for all, with the bytes of the busier direction. */
ncclResult_t nccl_gpu_group_end(void)
{
    struct real_call passed;
    ncclResult_t result;

    if (!held.some)
        return ncclSuccess;
    held.some = false;
    held.call.record.bytes =
        held.in_bytes > held.out_bytes ? held.in_bytes : held.out_bytes;
    real_enter(&passed);
    result = launch(held.comm, &held.call);
    real_leave(&passed);
    return result;
}
