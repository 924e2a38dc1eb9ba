/* SPDX-License-Identifier: Apache-2.0
 * NCCL on a real GPU. Ranks that do not exist send what this one sends, and
 * come when this one does, or later by what --stragglers says. Real ones, on
 * other GPUs, meet this one (parcel.h). */
#include "capture/nccl/gpu.h"

#include <cuda_runtime_api.h>

#include "capture/core/memory/device.h"
#include "capture/core/run/record.h"
#include "capture/core/work/submit.h"
#include "capture/emulate/kernel.h"
#include "capture/emulate/memory.h"
#include "capture/emulate/parcel.h"
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
static void note_moved(const struct nccl_call *call,
                       const struct communicator *c, struct emulated *k)
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
    struct parcel *parcel; /* NULL: none of it travels */
    uint64_t in_bytes, out_bytes;
} held;

/* Whether E meets other real ranks, or brings what the kernel cannot make: a
 * message, which comes back as it was sent, or a product. From a rank that does
 * not exist nothing comes that this one could wait for. */
static bool exchange_travels(const struct exchange *e,
                             const struct communicator *c)
{
    switch (e->shape) {
    case SHAPE_SEND:
    case SHAPE_RECEIVE:
        return parcel_is_real(c, e->root) || exchange_is_small(e);
    case SHAPE_BROADCAST:
    case SHAPE_SCATTER:
        return parcel_has_peers(c) && parcel_is_real(c, e->root);
    case SHAPE_REDUCE:
    case SHAPE_REDUCE_SCATTER:
        if (nccl_reduction(e->operation, e->type, e->count).kind ==
                REDUCE_PROD &&
            exchange_is_small(e))
            return true;
        break;
    default:
        break;
    }
    return parcel_has_peers(c);
}

/* A parcel with CALL in it; NULL where none is needed, or can be had. */
static struct parcel *parcel_of(const struct communicator *c,
                                const struct nccl_call *call)
{
    struct parcel *p =
        call->exchange.share && exchange_travels(&call->exchange, c)
            ? parcel_open(call->exchange.stream)
            : NULL;

    if (p)
        parcel_add(p, &call->exchange);
    return p;
}

/* What comes in P the kernel does not make. */
static ncclResult_t launch_parcel(const struct communicator *c,
                                  const struct nccl_call *call,
                                  struct parcel *p)
{
    struct emulated k;
    struct emulated_price price;

    note_moved(call, c, &k);
    if (moves_nothing(&k) || (p && exchange_is_small(&call->exchange)))
        k.shares = 0;
    if (p) {
        struct parcel_gate gate = parcel_gate(p);

        k.gate = gate.gate;
        k.ticket = gate.ticket;
        parcel_send(p);
    }
    emulated_price(c, call, &price);
    k.ns = price.ns;
    k.nodes = price.nodes;
    k.lag = price.lag;
    k.blocks = memsim_device_gpu()->nccl_channels;
    k.blocks += !k.blocks;
    int rc = k.ns || k.shares || k.gate ? kernel_launch(c->device, &k) : 0;
    if (p)
        parcel_bring(p);
    return rc ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t carry_call(const struct communicator *c,
                               const struct nccl_call *call, bool launches)
{
    struct real_call passed;
    ncclResult_t result = ncclSuccess;

    real_enter(&passed);
    if (launches)
        result = launch_parcel(c, call, parcel_of(c, call));
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

/* Sends what is held where CALL has no room beside it. */
static ncclResult_t hold_call(const struct communicator *c,
                              const struct nccl_call *call)
{
    ncclResult_t result = ncclSuccess;
    struct real_call passed;

    real_enter(&passed);
    if (held.some && held.parcel && exchange_travels(&call->exchange, c) &&
        !parcel_add(held.parcel, &call->exchange))
        result = nccl_gpu_group_end();
    else if (held.some && !held.parcel)
        held.parcel = parcel_of(c, call);
    if (!held.some)
        held = (struct held){.some = true,
                             .call = *call,
                             .comm = c,
                             .parcel = parcel_of(c, call)};
    real_leave(&passed);
    if (call->exchange.shape == SHAPE_SEND)
        held.out_bytes += call->exchange.share;
    else
        held.in_bytes += call->exchange.share;
    return result;
}

ncclResult_t nccl_gpu_call(struct communicator *c, const struct nccl_call *call)
{
    bool holds = call->exchange.in_group && is_message(call);
    ncclResult_t result = ncclSuccess;

    if (holds && held.some && held.comm != c)
        result = nccl_gpu_group_end();
    if (holds && !result)
        result = hold_call(c, call);
    return result ? result : carry_call(c, call, !holds);
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
    result = launch_parcel(held.comm, &held.call, held.parcel);
    real_leave(&passed);
    return result;
}
