/* SPDX-License-Identifier: Apache-2.0
 * What is not known stays so on its way through the host: a copy to the host
 * leaves a note of which bytes were not known, and a copy of the same bytes
 * from there to a GPU finds it. A note ends when PyTorch frees the memory, uses
 * it for another tensor or copies one there, and does not count where the bytes
 * have changed. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_VALUES_RETURN_H
#define MEMSIM_CAPTURE_CORE_MEMORY_VALUES_RETURN_H

#include <stdbool.h>
#include <stdint.h>

/* BYTES of numbers, floating ones where IS_FLOAT, lie at HOST as the script
 * gets them, copied from SOURCE, where some are not known. */
void values_return_note(uint64_t host, uint64_t source, uint64_t bytes,
                        bool is_float);

/* Copies BYTES from HOST to DESTINATION, as far as they are known, if there is
 * a note of them; false where there is none. */
bool values_return_copy(uint64_t destination, uint64_t host, uint64_t bytes);

/* The memory at HOST is something else from now on. */
void values_return_end(uint64_t host);

/* The same of all that begins in BYTES at HOST. */
void values_return_end_all(uint64_t host, uint64_t bytes);

/* Whether there may be a note. */
bool values_return_any(void);

#endif
