/* SPDX-License-Identifier: Apache-2.0
 * The GPUs: those that this process sees, the calling thread's current one,
 * contexts, and the memory that is allocated on each. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_DEVICE_H
#define MEMSIM_CAPTURE_CORE_MEMORY_DEVICE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "capture/core/base/core.h"
#include "common/catalogue/gpu.h"
#include "common/trace/trace.h"

/* The GPUs that CUDA_VISIBLE_DEVICES leaves; 0 outside a run. */
CORE_API int memsim_device_count(void);

/* CORE_OK where CUDA has a GPU and may be used: not in a child forked after the
 * start. memsim_device_check: where there is also such a DEVICE. */
CORE_API int memsim_device_ready(void);
CORE_API int memsim_device_check(int device);

/* True after the first call of memsim_device_count, which is the first thing
 * that the runtime and cuInit do. */
CORE_API bool memsim_device_started(void);

/* The catalogue's GPU behind every device. */
CORE_API const struct gpu *memsim_device_gpu(void);

/* The devices of this process's node, and the card that is DEVICE of these.
 * Where memsim started the ranks, each that is a process has its own card, and
 * what is seen of the others is one more. */
CORE_API uint32_t memsim_node_devices(void);
CORE_API int memsim_node_card(int device);

/* The number of visible DEVICE on the machine. */
CORE_API int memsim_device_physical(int device);

CORE_API int memsim_device_current(void); /* this thread's; 0 at first */
CORE_API int memsim_device_select(int device);

/* Makes DEVICE's context where there is none: the first call of most kinds
 * does. Fails where the GPU has no room for it, and in forked children. */
CORE_API int memsim_device_open(int device);
CORE_API bool memsim_device_is_open(int device);

/* Ends DEVICE's context with all that belongs to it; the next call that needs
 * one makes another. */
CORE_API int memsim_device_reset(int device);

/* Its last step: memory and the context itself. */
void device_close(int device);

/* What ended DEVICE's context (fault.h), which memsim_device_open answers too;
 * CORE_OK while all is well. */
CORE_API int memsim_device_fault(int device);
bool device_fail(int device, int code); /* false: it had ended before */

extern _Atomic int device_faults[];

static inline int device_fault(int device)
{
    return atomic_load_explicit(&device_faults[device], memory_order_relaxed);
}

/* Whether this thread has a context: opening a device binds it, as the
 * runtime's calls do; the driver's may do one without the other. */
CORE_API bool memsim_device_is_bound(void);
CORE_API void memsim_device_bind(bool now);

/* Lets the current device reach PEER's memory, or no longer. */
CORE_API int memsim_device_peer_enable(int peer, uint32_t flags);
CORE_API int memsim_device_peer_disable(int peer);
bool device_peer_enabled(int device, int peer);
void device_peer_reset(int device);

/* Takes BYTES of DEVICE's memory for the program. *ADDRESS is set on success
 * only. A refusal counts as an OOM, with all that the report needs, unless
 * CALLER_RETRIES: then the caller says itself when it gives up. */
CORE_API int memsim_device_malloc(int device, uint64_t bytes,
                                  enum trace_how how, bool caller_retries,
                                  uint64_t *address);

/* Gives an allocation of any device back by its start. */
CORE_API int memsim_device_free(uint64_t address, enum trace_how how);

/* The allocation that holds ADDRESS; false where none does. Outputs may be
 * NULL. */
CORE_API bool memsim_device_find(uint64_t address, int *device, uint64_t *start,
                                 uint64_t *bytes);

/* Whether the page of ADDRESS, which cudaMalloc gave once, still has memory
 * behind it: small allocations share one. */
bool device_is_mapped(uint64_t address);

/* The values of cudaMemGetInfo. */
CORE_API void memsim_device_memory(int device, uint64_t *free_bytes,
                                   uint64_t *total_bytes);

/* Memory that a library takes for itself, without an address: handles, lazily
 * loaded modules. Once per process, device and WHO (a literal). */
CORE_API int memsim_device_library(int device, const char *who, uint64_t bytes);

/* The same for kernels that are loaded as they are used: nothing where the
 * context has taken all kernels already. */
CORE_API int memsim_device_library_kernels(int device, const char *who,
                                           uint64_t bytes);

/* The same, at each call. */
CORE_API int memsim_device_library_more(int device, const char *who,
                                        uint64_t bytes);

/* The same for an object of WHO's (a literal), such as a handle; at its end
 * what it took is left to the next one, which is our simplification. */
CORE_API int memsim_device_library_object(int device, const char *who,
                                          uint64_t bytes);
CORE_API void memsim_device_library_object_end(int device, const char *who);

/* The GPU's memory without an address: NAME stands for one in the trace. */
int device_take(int device, uint64_t bytes, enum trace_how how,
                bool caller_retries, uint64_t name);
void device_give(int device, uint64_t bytes, enum trace_how how, uint64_t name);

/* For ipc.c: the allocation of this process that holds ADDRESS, if any. */
bool device_owns(uint64_t address, int *device, uint64_t *start,
                 uint64_t *bytes);

/* An address range of BYTES for other processes' memory, which costs nothing; 0
 * where there is no room. */
CORE_API uint64_t memsim_device_import(int device, uint64_t bytes);
CORE_API void memsim_device_forget_import(uint64_t address);

/* --- for capture/real: what a real GPU did ------------------------------- */

/* DEVICE's context was made, and took BYTES. */
void device_real_open(int device, uint64_t bytes);

/* An allocation was given, refused, taken back; a library took BYTES. */
void device_real_give(int device, uint64_t address, uint64_t bytes,
                      enum trace_how how, bool caller_retries);
void device_real_refuse(int device, uint64_t bytes, enum trace_how how,
                        bool caller_retries);
void device_real_take_back(int device, uint64_t address, uint64_t bytes,
                           enum trace_how how);
void device_real_library(int device, const char *who, uint64_t bytes);

/* This process's figures of DEVICE; NULL outside a run. */
struct session_usage;
struct session_usage *device_usage(int device);

/* Reports that a request of REQUESTED_BYTES was given up, after this thread's
 * last refusal: by torch's allocator, or by the program itself. */
void device_give_up(int device, bool torch, uint64_t requested_bytes);

#endif
