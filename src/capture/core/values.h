/* SPDX-License-Identifier: Apache-2.0
 * What device memory holds, as far as it matters: small copies, sets and fills
 * really happen, in a shadow of each card's address window; large ones are
 * skipped. Memory that nothing wrote reads as zeros, and so does a block that
 * torch hands out anew: what a kernel would have computed is not known, and a
 * stale value is worse than none. */
#ifndef MEMSIM_CAPTURE_VALUES_H
#define MEMSIM_CAPTURE_VALUES_H

#include <stdbool.h>

#include "capture/core/core.h"

/* Copies over this many bytes leave the destination as it was. */
#define VALUES_COPY_BYTES (UINT64_C(256) << 10)

/* Gives DEVICE's window its shadow. Without address space for it there are no
 * values: everything reads as zeros. */
void values_place(int device, uint64_t base, uint64_t bytes);

/* ADDRESS may lie in any device's window or, for copies, in host memory. */
CORE_API void memsim_values_copy(uint64_t destination, uint64_t source,
                                 uint64_t bytes);

/* Repeats the UNIT bytes (1, 2, 4, 8 or 16) at VALUE, COUNT times. */
CORE_API void memsim_values_fill(uint64_t address, const void *value,
                                 uint64_t unit, uint64_t count);

/* Makes BYTES at ADDRESS read as zeros. */
CORE_API void memsim_values_forget(uint64_t address, uint64_t bytes);

/* True where ADDRESS lies in a device's window. */
CORE_API bool memsim_values_is_device(uint64_t address);

#endif
