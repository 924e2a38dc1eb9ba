/* SPDX-License-Identifier: Apache-2.0
 * A NCCL in which every other rank does as this one does, and at once: enough
 * for memory, and the record of what was asked is what time needs. */
#ifndef MEMSIM_CAPTURE_NCCL_H
#define MEMSIM_CAPTURE_NCCL_H

#include <nccl.h>
#include <stdbool.h>
#include <stdint.h>

#include "capture/core/core.h"

#define NCCL_ID_BYTES 24 /* what is unique of an ncclUniqueId */

/* What an ncclComm_t points to. */
struct communicator {
    int device, rank, ranks;
    bool connected;          /* it has its buffers */
    uint32_t children;       /* made of it so far; the same in all ranks */
    uint64_t root;           /* the handle that MEMBERS are ranks of; 0: it */
    const uint32_t *members; /* NULL: itself, or not told */
    char id[NCCL_ID_BYTES];  /* the same in all ranks, and in no other */
};

/* nccl.h leaves their arguments open. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

struct communicator *communicator_get(ncclComm_t comm);

/* Takes its buffers, which NCCL makes when they are first needed. */
ncclResult_t communicator_connect(struct communicator *c);
ncclResult_t nccl_result(int rc);

#endif
