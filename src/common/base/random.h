/* SPDX-License-Identifier: Apache-2.0
 * Random numbers that are the same everywhere, for whoever gives the seed. */
#ifndef MEMSIM_COMMON_BASE_RANDOM_H
#define MEMSIM_COMMON_BASE_RANDOM_H

#include <stdint.h>

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* The next number of a stream whose state, at first its seed, is *STATE:
 * splitmix64 (Steele, Lea, Flood 2014). */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += RANDOM_STEP;

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Number N, from 0, of SEED's stream. */
static inline uint64_t random_at(uint64_t seed, uint64_t n)
{
    uint64_t state = seed + n * RANDOM_STEP;

    return random_next(&state);
}

#endif
