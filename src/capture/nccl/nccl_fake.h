/* SPDX-License-Identifier: Apache-2.0
 * NCCL: its communicators, what they take of a GPU, and what ranks that are
 * processes of this run send each other (exchange.h). The time that it takes is
 * for the simulator, by the record of each call. */
#ifndef MEMSIM_CAPTURE_NCCL_NCCL_FAKE_H
#define MEMSIM_CAPTURE_NCCL_NCCL_FAKE_H

#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "capture/core/run/mailbox.h"
#include "common/catalogue/nccl_memory.h"

#define NCCL_ID_BYTES     MAILBOX_ID_BYTES /* unique of an ncclUniqueId */
#define COMMUNICATOR_GONE 16

/* What an ncclComm_t points to. */
struct communicator {
    int device, rank, ranks;
    int local_ranks;         /* of those, on this machine */
    uint32_t uses;           /* what it has buffers of */
    uint8_t *peers;          /* by rank, enum direction; NULL: none yet */
    uint32_t children;       /* made of it so far; the same in all ranks */
    uint64_t collectives;    /* called so far; likewise */
    bool suspended;          /* ncclCommSuspend: no calls until it is resumed */
    bool told;               /* that its ranks differ (differ.h) */
    uint64_t (*messages)[2]; /* so far, to and from each rank; NULL: none */
    uint64_t root;           /* the handle that MEMBERS are ranks of; 0: it */
    const uint32_t *members; /* NULL: itself, or not told */
    const uint32_t *places;  /* ranks of the world by rank, where told */
    struct mailbox box;
    uint32_t gone[COMMUNICATOR_GONE], gone_count; /* ranks not waited for */
    char id[NCCL_ID_BYTES];  /* the same in all ranks, and in no other */
};

/* nccl.h leaves their arguments open. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

struct communicator *communicator_get(ncclComm_t comm);

/* Which algorithms NCCL may choose for a call, by size: the tuner's choice is
 * not modelled, so a call takes the buffers of all of them. */
enum uses {
    USES_RING = 1u << NCCL_MEMORY_RING,
    USES_GATHER = USES_RING | 1u << NCCL_MEMORY_NVLS,
    USES_REDUCE = USES_GATHER | 1u << NCCL_MEMORY_TREE,
};

/* The Python stack of a call, for ranks that do not call alike; 0: none, or
 * there are no other ranks. */
uint32_t communicator_stack(const struct communicator *c);

enum direction { SENDS = 1, RECEIVES = 2 };

/* Whether RANK is on the machine of this one. */
bool communicator_is_near(const struct communicator *c, int rank);

/* Takes the buffers for USES, or for sending to or receiving from PEER or,
 * where it is -1, from every rank: NCCL makes them when they are first needed.
 */
ncclResult_t communicator_connect(struct communicator *c, uint32_t uses);
ncclResult_t communicator_meet(struct communicator *c, int peer,
                               uint8_t directions);
void communicator_disconnect(const struct communicator *c);

/* What it takes of its GPU now, in bytes. */
uint64_t communicator_bytes(const struct communicator *c);

/* Writes to ID (NCCL_ID_BYTES) the name of PARENT's next child with COLOR,
 * which is the same in all ranks. */
void communicator_child_name(struct communicator *parent, int color, char *id);

/* Of the NCCL that this process's PyTorch comes with. */
int nccl_version(void);
ncclResult_t nccl_result(int rc);

#endif
