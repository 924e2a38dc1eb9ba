/* SPDX-License-Identifier: Apache-2.0
 * A NCCL in which every other rank does as this one does, and at once: enough
 * for memory, and the record of what was asked is what time needs. */
#ifndef MEMSIM_CAPTURE_NCCL_H
#define MEMSIM_CAPTURE_NCCL_H

#include <nccl.h>
#include <stdint.h>

#include "capture/core/core.h"

/* What an ncclComm_t points to. */
struct communicator {
    int device, rank, ranks;
};

/* nccl.h leaves their arguments open. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

struct communicator *communicator_get(ncclComm_t comm);
ncclResult_t nccl_result(int rc);

#endif
