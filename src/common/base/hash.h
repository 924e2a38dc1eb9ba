/* SPDX-License-Identifier: Apache-2.0
 * FNV-1a, 64 bits: the one hash of texts and bytes. Its values are the same on
 * every machine and in every version: files are named by them. hash_word and
 * hash_words are for tables in memory. */
#ifndef MEMSIM_COMMON_BASE_HASH_H
#define MEMSIM_COMMON_BASE_HASH_H

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

/* HASH, of any start, with one WORD more: for tables in memory, quick. */
static inline uint64_t hash_word(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static inline uint64_t hash_fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Over COUNT WORDS, an even number: a sum of products of two words each, which
 * do not wait for each other. Never 0. Inline, so that a caller with a constant
 * count has no loop. */
static inline __attribute__((always_inline)) uint64_t
hash_words(const uint64_t *words, size_t count)
{
    uint64_t a = UINT64_C(0x9e3779b97f4a7c15), b = UINT64_C(0xd6e8feb86659fd93);
    uint64_t hash = 0;

#pragma GCC unroll 32
    for (size_t i = 0; i < count; i += 2) {
        hash += hash_fold(words[i] ^ a, words[i + 1] ^ b);
        a += UINT64_C(0x243f6a8885a308d3);
        b += UINT64_C(0x13198a2e03707344);
    }
    hash = hash_fold(hash, a);
    return hash ? hash : 1;
}

#endif
