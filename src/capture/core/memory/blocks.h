/* SPDX-License-Identifier: Apache-2.0
 * The blocks that PyTorch's allocator has handed out, by address. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_BLOCKS_H
#define MEMSIM_CAPTURE_CORE_MEMORY_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct block {
    uint64_t address, bytes; /* bytes: whole units of 512 */
};

/* Makes room for those of the window of BYTES at BASE. WINDOW: from 0 to
 * SESSION_DEVICES. Without address space for it no block is found. */
void blocks_place(int window, uint64_t base, uint64_t bytes);

/* A block is handed out, or taken back. The allocator's lock is held. */
void blocks_add(uint64_t address, uint64_t bytes);
void blocks_remove(uint64_t address, uint64_t bytes);

/* The block that ADDRESS lies in; false where there is none. */
bool blocks_find(uint64_t address, struct block *block);

#endif
