/* SPDX-License-Identifier: Apache-2.0
 * The functions of common/base/xmalloc.h without a heap: blocks of a power of
 * two bytes from one reservation, with a list of free ones for each size. Not
 * for several threads at once. */
#ifndef MEMSIM_CAPTURE_CLOCK_ARENA_H
#define MEMSIM_CAPTURE_CLOCK_ARENA_H

#include <stddef.h>

/* BYTES at MEMORY, zeroed, are the arena's. FULL is called where they do not
 * suffice, and must not return. */
void arena_start(void *memory, size_t bytes, void (*full)(void));

#endif
