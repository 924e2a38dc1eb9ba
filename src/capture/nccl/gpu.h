/* SPDX-License-Identifier: Apache-2.0
 * The GPU that NCCL runs on: a simulated one (gpu.c), or a real one whose ranks
 * elsewhere do not exist (capture/emulate). */
#ifndef MEMSIM_CAPTURE_NCCL_GPU_H
#define MEMSIM_CAPTURE_NCCL_GPU_H

#include "capture/nccl/exchange.h"
#include "common/trace/trace.h"

/* Those that return an int answer as the core does: CORE_OK, or why not. */
int nccl_gpu_current(void);
int nccl_gpu_open(int device);
int nccl_gpu_of_stream(uint64_t stream, int *device);

/* Memory of NCCL's own: once a process and device for WHO (a literal), or for
 * an object of WHO's, which ends. */
int nccl_gpu_library(int device, const char *who, uint64_t bytes);
int nccl_gpu_object(int device, const char *who, uint64_t bytes);
void nccl_gpu_object_end(int device, const char *who);

/* A collective or a message that was checked, and whose buffers are there. */
struct nccl_call {
    struct exchange exchange;
    int sends, receives; /* shares that go out, that come in */
    struct trace_collective record;
};

ncclResult_t nccl_gpu_call(struct communicator *c,
                           const struct nccl_call *call);

/* What is known of BYTES of a buffer of a call (values_pack.h): of the GPU's
 * memory, or of the host's where that holds what a real GPU has. */
bool nccl_gpu_take(uint64_t address, uint64_t bytes, void *data,
                   unsigned char *marks);
void nccl_gpu_give(uint64_t address, uint64_t bytes, const void *data,
                   const unsigned char *marks);
void nccl_gpu_forget(uint64_t address, uint64_t bytes);

/* A group of calls ends. */
ncclResult_t nccl_gpu_group_end(void);

#endif
