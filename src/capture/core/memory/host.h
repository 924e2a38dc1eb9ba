/* SPDX-License-Identifier: Apache-2.0
 * Host memory that CUDA knows of: pinned, registered, managed. It is real
 * memory; a list says which is which. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_HOST_H
#define MEMSIM_CAPTURE_CORE_MEMORY_HOST_H

#include <stdbool.h>

#include "capture/core/base/core.h"

enum host_kind {
    HOST_PINNED,
    HOST_REGISTERED, /* the program's own memory, pinned by cudaHostRegister */
    HOST_MANAGED,
};

struct host_range {
    uint64_t address, bytes;
    enum host_kind kind;
    uint32_t flags;
    int device; /* current when it was made */
};

CORE_API int memsim_host_malloc(uint64_t bytes, enum host_kind kind,
                                uint32_t flags, uint64_t *address);
CORE_API int memsim_host_register(uint64_t address, uint64_t bytes,
                                  uint32_t flags);

/* Ends the range that starts at ADDRESS and is of KIND. */
CORE_API int memsim_host_free(uint64_t address, enum host_kind kind);

/* What cudaHostUnregister answers: memory of cudaHostAlloc is an invalid
 * argument, other memory one that is not registered. */
CORE_API int memsim_host_unregister(uint64_t address);

/* The range that holds ADDRESS; false where none does. */
CORE_API bool memsim_host_find(uint64_t address, struct host_range *range);

/* For capture/real: a real GPU's driver gave BYTES at ADDRESS while DEVICE was
 * current; it took them back. */
void host_real_give(uint64_t address, uint64_t bytes, enum host_kind kind,
                    uint32_t flags, int device);
void host_real_take_back(uint64_t address);

/* For reset.c: what was made with DEVICE current ends. */
void host_reset(int device);

#endif
