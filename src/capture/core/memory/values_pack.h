/* SPDX-License-Identifier: Apache-2.0
 * What device memory holds, taken out and put back elsewhere: in another
 * process, too. Bytes and what is known of each (values.h) go together. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_VALUES_PACK_H
#define MEMSIM_CAPTURE_CORE_MEMORY_VALUES_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"

/* Copies BYTES at ADDRESS, in a device's window, to DATA, and a mark for each
 * (VALUES_GIVEN and so on) to MARKS. False, with both zeroed, where nothing is
 * known and all is 0. */
CORE_API bool memsim_values_take(uint64_t address, uint64_t bytes, void *data,
                                 unsigned char *marks);

/* Writes DATA with MARKS to BYTES at ADDRESS. */
CORE_API void memsim_values_give(uint64_t address, uint64_t bytes,
                                 const void *data, const unsigned char *marks);

#endif
