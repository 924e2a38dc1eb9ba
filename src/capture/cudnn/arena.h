/* SPDX-License-Identifier: Apache-2.0
 * Memory for what descriptors hold: blocks of powers of two, out of pages of
 * our own. A block that is given back goes to the calling thread's free list,
 * so that there is no lock to be left held by a fork; what a thread holds when
 * it ends is lost. */
#ifndef MEMSIM_CAPTURE_CUDNN_ARENA_H
#define MEMSIM_CAPTURE_CUDNN_ARENA_H

#include <stddef.h>
#include <stdint.h>

/* At least BYTES, 16-byte aligned, not zeroed; NULL where there are none. The
 * block's true size is in *CAPACITY. */
void *arena_take(size_t bytes, size_t *capacity);

/* CAPACITY as arena_take said it. */
void arena_give(void *block, size_t capacity);

#endif
