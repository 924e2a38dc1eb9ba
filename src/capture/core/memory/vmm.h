/* SPDX-License-Identifier: Apache-2.0
 * Virtual memory management: reserved addresses, physical memory, and maps from
 * one to the other. Physical memory uses the GPU's memory from its creation
 * until nothing refers to it any more. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_VMM_H
#define MEMSIM_CAPTURE_CORE_MEMORY_VMM_H

#include <stdbool.h>

#include "capture/core/base/core.h"

#define VMM_GRANULE_BYTES (UINT64_C(2) << 20)

struct vmm_physical {
    int device;
    uint64_t bytes;
    uint32_t references; /* the creator's, and one for each map */
    bool imported;       /* another process's: it pays for it */
    uint64_t handle_types;

    /* Where its contents lie while it is not mapped, if they are known. */
    uint64_t kept_address, kept_bytes;
    struct vmm_physical *next_kept;
};

/* Addresses: multiples of ALIGNMENT (0: the granule's). WANT is a wish. */
CORE_API int memsim_vmm_reserve(uint64_t bytes, uint64_t alignment,
                                uint64_t want, uint64_t *address);
CORE_API int memsim_vmm_unreserve(uint64_t address, uint64_t bytes);

/* Memory of DEVICE. See memsim_device_malloc for CALLER_RETRIES. */
CORE_API int memsim_vmm_create(int device, uint64_t bytes,
                               uint64_t handle_types, bool caller_retries,
                               uint64_t *physical);
CORE_API int memsim_vmm_release(uint64_t physical);

/* The same memory in another process: a file descriptor carries it. */
CORE_API int memsim_vmm_export(uint64_t physical, int *fd);
CORE_API int memsim_vmm_import(int fd, uint64_t *physical);

CORE_API int memsim_vmm_map(uint64_t address, uint64_t bytes, uint64_t offset,
                            uint64_t physical);
CORE_API int memsim_vmm_unmap(uint64_t address, uint64_t bytes);

/* Lets a mapped range be used, or no longer. */
CORE_API int memsim_vmm_access(uint64_t address, uint64_t bytes, bool allowed);
CORE_API bool memsim_vmm_accessible(uint64_t address);

/* What is mapped at ADDRESS, with a reference more; NULL without. */
CORE_API struct vmm_physical *memsim_vmm_retain(uint64_t address);

/* The usable range around ADDRESS, which may consist of several maps. With
 * LOCK_DEVICE held. */
bool vmm_find(uint64_t address, int *device, uint64_t *start, uint64_t *bytes);

/* The one map that ADDRESS lies in, which can be accessed; false where there is
 * none. */
CORE_API bool memsim_vmm_map_find(uint64_t address, uint64_t *start,
                                  uint64_t *bytes);

#endif
