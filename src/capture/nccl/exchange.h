/* SPDX-License-Identifier: Apache-2.0
 * What a collective brings from one rank to others. Small payloads really
 * travel, between ranks that are processes of this run; of larger ones nothing
 * is known. A rank that is no process sends what the one sends that stands for
 * it (sources.h). */
#ifndef MEMSIM_CAPTURE_NCCL_EXCHANGE_H
#define MEMSIM_CAPTURE_NCCL_EXCHANGE_H

#include "capture/nccl/nccl_fake.h"

enum shape {
    SHAPE_REDUCE,         /* to one rank, or all */
    SHAPE_REDUCE_SCATTER, /* a share of the sum each */
    SHAPE_BROADCAST,
    SHAPE_GATHER, /* to one rank, or all */
    SHAPE_SCATTER,
    SHAPE_ALL_TO_ALL,
    SHAPE_SEND,
    SHAPE_RECEIVE,
};

#define EXCHANGE_ALL (-1) /* for a root: every rank is one */

struct exchange {
    ncclComm_t comm;
    const char *name; /* of the call */
    enum shape shape;
    int type, operation;
    int root; /* or the other rank of a message, or EXCHANGE_ALL */
    uint64_t stream, send, receive; /* the latter is 0 where none is given */
    uint64_t count, share;          /* elements and bytes of a rank's part */
    uint64_t number; /* of the call: communicator_number() */
    bool in_group;   /* between ncclGroupStart and ncclGroupEnd */
};

/* Begins E, which is not captured. Where it is in no group, it is completed if
 * that needs no waiting. */
void exchange_begin(const struct exchange *e);

/* How long E has been waited for. */
struct exchange_wait {
    struct exchange e;
    uint64_t busy_ms, since_ms; /* of the others, when they last were busy */
    uint64_t looked_ms;
    uint32_t looks; /* since others wait for this process, or no longer do */
    bool wanted;
};

/* The steps of it, for who waits in another way. Whether what E sends and
 * receives may travel; how many bytes go out and come in here; what this rank
 * sends; whether all that it waits for is there, or is given up after so long;
 * the result; a pause until something may have come. */
bool exchange_is_small(const struct exchange *e);
uint64_t exchange_sent(const struct exchange *e);
uint64_t exchange_received(const struct exchange *e);
void exchange_post(const struct exchange *e);
bool exchange_has_come(struct exchange_wait *w, uint64_t waited_ms);
void exchange_take(const struct exchange *e);
void exchange_sleep(const struct exchange_wait *w, unsigned ms);

/* C is about to end. */
void exchange_end(struct communicator *c);

#endif
