/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's caching allocator, by its virtual table: we stand before the four
 * functions that say how much is asked for and from where, and attach an
 * observer to its trace when more than that is needed. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_TORCH_SLOTS_H
#define MEMSIM_CAPTURE_CORE_TORCH_TORCH_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_entry; /* c10::CachingDeviceAllocator::TraceEntry */

/* "2.11.0+cu130" of the torch that LIBRARY, its libc10_cuda.so, belongs to. */
bool torch_slots_version(const char *library, char *version, size_t size);

/* Finds the allocator of VERSION. False where it is not one we know. */
bool torch_slots_find(const char *version);

/* Stands before its functions; false where that cannot be. OTHERWISE is called
 * before memory comes from another place than the default stream's pool. */
bool torch_slots_watch(void (*otherwise)(void));

/* What this thread asked the allocator for last; 0 where that is not known. */
uint64_t torch_slots_requested(void);

/* The pool that ENTRY is of; zeros where this version does not say. */
void torch_slots_pool(const struct trace_entry *entry, uint64_t pool[2]);

/* Has SEE called with each entry of the allocator's trace from now on. */
void torch_slots_attach(void (*see)(const void *functor,
                                    const struct trace_entry *entry));

#endif
