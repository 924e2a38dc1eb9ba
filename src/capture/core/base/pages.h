/* SPDX-License-Identifier: Apache-2.0
 * Memory that is not the user's heap: pages, and arrays that grow in place. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_PAGES_H
#define MEMSIM_CAPTURE_CORE_BASE_PAGES_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* BYTES of address space, zeroed when first touched, taking no memory until
 * then. Near WANT where that is free (0: anywhere); NULL where the address
 * space is limited. Never given back. */
CORE_API void *memsim_pages_reserve(uint64_t want, uint64_t bytes);

/* Whether a part of START to PAST was reserved so. */
bool pages_reserved(uint64_t start, uint64_t past);

/* The same, but touching it faults: addresses only. */
void *pages_reserve_untouchable(uint64_t want, uint64_t bytes);

/* Makes BYTES of the host's at P zero, and where it can whole pages of them
 * pages that nobody touched. */
CORE_API void memsim_pages_clear(void *p, uint64_t bytes);

/* Whether BYTES of the host's at P are private memory of which no page was
 * touched, and zero. */
CORE_API bool memsim_pages_untouched(const void *p, uint64_t bytes);

/* Small permanent memory, 16-byte aligned, zeroed; NULL when there is none. */
CORE_API void *memsim_pages_keep(size_t bytes);

#endif
