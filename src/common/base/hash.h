/* SPDX-License-Identifier: Apache-2.0
 * FNV-1a, 64 bits: the one hash of texts and bytes. Its values are the same on
 * every machine and in every version: files are named by them. */
#ifndef MEMSIM_COMMON_HASH_H
#define MEMSIM_COMMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_PRIME UINT64_C(0x100000001b3)

/* HASH, HASH_START at first, with LENGTH more bytes. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes,
                                  size_t length)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ at[i]) * HASH_PRIME;
    return hash;
}

/* The same with a text's characters, without its end. */
static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * HASH_PRIME;
    return hash;
}

#endif
