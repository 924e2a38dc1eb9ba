/* SPDX-License-Identifier: Apache-2.0
 * Addresses in a device's window that cudaMalloc did not return: a memory
 * pool's, or another process's. Their owners, in folders above this one, add
 * themselves to the table when the core is loaded. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_OWNER_H
#define MEMSIM_CAPTURE_CORE_MEMORY_OWNER_H

#include <stdbool.h>
#include <stdint.h>

enum owner {
    OWNER_POOL,    /* a chunk of a stream-ordered memory pool */
    OWNER_FOREIGN, /* opened with cudaIpcOpenMemHandle */
    OWNER_COUNT,
};

/* OWNS says whether ADDRESS starts what OWNER has. */
void owner_set(enum owner owner, bool (*owns)(uint64_t address));

bool owner_has(enum owner owner, uint64_t address);

#endif
