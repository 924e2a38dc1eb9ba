/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEMSIM_COMMON_BASE_CLAMP_H
#define MEMSIM_COMMON_BASE_CLAMP_H

#include <stdint.h>

/* The nearest to VALUE of LEAST to MOST. */
static inline uint32_t clamp_u32(uint64_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : (uint32_t)value;
}

static inline uint64_t least_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t most_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A less B; 0 where B is more. */
static inline uint64_t minus_or_zero(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
