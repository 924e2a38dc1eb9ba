/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/values_pattern.h"

#include <string.h>

struct pattern patterns[PATTERNS];

enum { FREE, CLAIMED, READY };

static _Atomic unsigned char states[PATTERNS];

static unsigned char number_of(uint32_t index)
{
    return (unsigned char)(16 + index / 7 * 8 + index % 7 + 1);
}

/* Takes the place INDEX for PATTERN; false where another thread did. */
static bool place_take(uint32_t index, const struct pattern *pattern)
{
    unsigned char state = FREE;

    if (!atomic_compare_exchange_strong(&states[index], &state, CLAIMED))
        return false;
    patterns[index] = *pattern;
    atomic_store(&states[index], READY);
    return true;
}

unsigned char pattern_number(const struct pattern *pattern)
{
    for (uint32_t i = 0; i < PATTERNS; i++) {
        if (atomic_load(&states[i]) == FREE && place_take(i, pattern))
            return number_of(i);
        if (atomic_load(&states[i]) == READY &&
            !memcmp(&patterns[i], pattern, sizeof *pattern))
            return number_of(i);
    }
    return 0;
}

struct pattern pattern_make(uint64_t address, const void *value, uint64_t unit,
                            unsigned char mark)
{
    const unsigned char *from = value;
    struct pattern pattern = {.mark = mark};

    for (uint64_t i = 0; i < PATTERN_BYTES; i++)
        pattern.bytes[(address + i) % PATTERN_BYTES] = from[i % unit];
    return pattern;
}

void pattern_write(const struct pattern *pattern, uint64_t address, void *to,
                   uint64_t bytes)
{
    unsigned char *at = to;
    uint64_t first = bytes < PATTERN_BYTES ? bytes : PATTERN_BYTES;

    for (uint64_t i = 0; i < first; i++)
        at[i] = pattern->bytes[(address + i) % PATTERN_BYTES];
    for (uint64_t done = first; done < bytes; done *= 2)
        memcpy(at + done, at, done < bytes - done ? done : bytes - done);
}
