/* SPDX-License-Identifier: Apache-2.0
 * Windows: memory that the ranks of a communicator may write or read without
 * the other's help. */
#ifndef MEMSIM_CAPTURE_NCCL_WINDOW_H
#define MEMSIM_CAPTURE_NCCL_WINDOW_H

#include "capture/nccl/nccl_fake.h"

struct window {
    ncclComm_t comm;
    uint64_t name; /* its ncclWindow_t: of the GPU, as kernels get it */
    uint64_t address, bytes;
    bool symmetric; /* NCCL_WIN_COLL_SYMMETRIC */
    uint64_t peers; /* where those of this machine lie; 0: not asked for */
};

/* NULL where it has ended, or its communicator has. */
struct window *window_get(ncclWindow_t window);

/* The one of COMM that BUFFER lies in, or NULL. */
struct window *window_around(ncclComm_t comm, const void *buffer);

/* What COMM's windows hold is not known any more. */
void windows_forget(ncclComm_t comm);

#endif
