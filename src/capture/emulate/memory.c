/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/emulate/memory.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>

#include "capture/core/base/core.h"
#include "capture/real/card.h"
#include "capture/real/real.h"

#define PIECES 4096 /* at a time; what comes later is not given back */

static struct piece {
    const char *who; /* NULL: none is here */
    uint64_t bytes;
    int device;
    bool used;
} pieces[PIECES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of pieces */

/* That of WHO on DEVICE which is USED or not, of BYTES (0: any). */
static struct piece *piece_find(int device, const char *who, uint64_t bytes,
                                bool used)
{
    for (int i = 0; i < PIECES && pieces[i].who; i++)
        if (pieces[i].who == who && pieces[i].device == device &&
            pieces[i].used == used && (!bytes || pieces[i].bytes == bytes))
            return &pieces[i];
    return NULL;
}

static void piece_add(int device, const char *who, uint64_t bytes)
{
    int i = 0;

    while (i < PIECES && pieces[i].who)
        i++;
    if (i < PIECES)
        pieces[i] = (struct piece){who, bytes, device, true};
}

static int allocate_on(int device, const char *who, uint64_t bytes)
{
    CUdeviceptr address;

    if (card_is_full(device, bytes) ||
        REAL_FUNCTION(cuMemAlloc)(&address, bytes)) {
        card_refuse(device, bytes, TRACE_HOW_MALLOC, false);
        return CORE_OUT_OF_MEMORY;
    }
    card_library(device, who, bytes);
    return CORE_OK;
}

int memory_take(int device, const char *who, uint64_t bytes, bool once)
{
    int rc = CORE_OK;

    if (!bytes)
        return rc;
    pthread_mutex_lock(&lock);
    struct piece *spare = piece_find(device, who, bytes, false);
    if (spare)
        spare->used = true;
    else if (!once || !piece_find(device, who, 0, true))
        rc = allocate_on(device, who, bytes);
    if (!spare && !rc)
        piece_add(device, who, bytes);
    pthread_mutex_unlock(&lock);
    return rc;
}

void memory_end(int device, const char *who)
{
    pthread_mutex_lock(&lock);
    struct piece *used = piece_find(device, who, 0, true);
    if (used)
        used->used = false;
    pthread_mutex_unlock(&lock);
}

/* --- the program's, by NCCL ----------------------------------------------- */

ncclResult_t ncclMemAlloc(void **p, size_t bytes)
{
    return cudaMalloc(p, bytes) ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t ncclMemFree(void *p)
{
    return cudaFree(p) ? ncclUnhandledCudaError : ncclSuccess;
}

/* A buffer that NCCL knows beforehand takes nothing. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size,
                              void **handle)
{
    if (!comm || !buffer || !size || !handle)
        return ncclInvalidArgument;
    *handle = buffer;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    return comm && handle ? ncclSuccess : ncclInvalidArgument;
}
