/* SPDX-License-Identifier: Apache-2.0
 * Activities as CUPTI's records: the newest layout of each kind that this CUDA
 * major has. A newer layout only adds to the end of an older one, so programs
 * of every minor version read them. */
#ifndef MEMSIM_CAPTURE_CUPTI_RECORD_H
#define MEMSIM_CAPTURE_CUPTI_RECORD_H

#include <stdbool.h>

#include "capture/core/run/activity.h"

#include <cupti.h>

#if MEMSIM_CUDA_MAJOR >= 13
/* CUpti_ActivityKernel11 of CUDA 13.1 */
struct record_kernel {
    CUpti_ActivityKernel10 kernel;
    int32_t priority;
    uint32_t padding;
};
#else
struct record_kernel {
    CUpti_ActivityKernel9 kernel;
};
#endif

union record {
    CUpti_Activity head;
    struct record_kernel kernel;
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemcpyPtoP4 peer;
    CUpti_ActivityMemset4 set;
    CUpti_ActivityAPI api;
    CUpti_ActivityExternalCorrelation external;
    CUpti_ActivitySynchronization2 wait;
    CUpti_ActivityCudaEvent2 event;
};

/* The bytes of a record of KIND; 0: we make none. */
size_t record_bytes(CUpti_ActivityKind kind);

/* Makes *R of A for those who enabled KIND. Returns false where A is none of
 * that kind. Not for several threads at once. */
bool record_make(union record *r, CUpti_ActivityKind kind,
                 const struct activity *a);

/* Which function the call A was: one of the driver's, else of the runtime's;
 * and its number among those. */
bool record_is_driver(const struct activity *a);
CUpti_CallbackId record_callback_id(const struct activity *a);

#endif
