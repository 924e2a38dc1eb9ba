/* SPDX-License-Identifier: Apache-2.0
 * What tells a convolution from others, whichever engine runs it: the start of
 * a CONVOLUTION record's text. */
#ifndef MEMSIM_COMMON_TRACE_CONVOLUTION_KEY_H
#define MEMSIM_COMMON_TRACE_CONVOLUTION_KEY_H

#include <string.h>

#include "common/base/hash.h"

/* How many bytes of TEXT that are: what follows is of the engine. */
static inline size_t convolution_text_bytes(const char *text, size_t bytes)
{
    const char *end = memmem(text, bytes, " math=", 6);

    return end ? (size_t)(end - text) : bytes;
}

/* The key of OPERATION, the record's, of such a TEXT; never 0. */
static inline uint64_t convolution_key(uint64_t operation, const char *text,
                                       size_t bytes)
{
    return hash_bytes(HASH_START + operation, text,
                      convolution_text_bytes(text, bytes)) |
           1;
}

#endif
