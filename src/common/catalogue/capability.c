/* SPDX-License-Identifier: Apache-2.0 */
#include "common/catalogue/capability.h"

#include <inttypes.h>
#include <stdio.h>

static bool has_bit(const struct capability_set *set, uint32_t at)
{
    return at < CAPABILITIES && set->bits[at / 64] >> at % 64 & 1;
}

void capability_add(struct capability_set *set, uint32_t first, uint32_t last)
{
    for (uint32_t i = first; i <= last && i < CAPABILITIES; i++)
        set->bits[i / 64] |= UINT64_C(1) << i % 64;
}

bool capability_has(const struct capability_set *set, uint32_t major,
                    uint32_t minor)
{
    return minor < 10 && has_bit(set, 10 * major + minor);
}

bool capability_is_empty(const struct capability_set *set)
{
    for (int i = 0; i < CAPABILITY_WORDS; i++)
        if (set->bits[i])
            return false;
    return true;
}

const char *capability_text(const struct capability_set *set, char *text,
                            size_t size)
{
    size_t length = 0;

    text[0] = '\0';
    for (uint32_t first = 0, end; first < CAPABILITIES; first = end) {
        for (end = first; has_bit(set, end);)
            end++;
        if (end++ == first)
            continue;
        int wrote = snprintf(text + length, size - length,
                             "%s%" PRIu32 ".%" PRIu32 "-%" PRIu32 ".%" PRIu32,
                             length ? "," : "", first / 10, first % 10,
                             (end - 2) / 10, (end - 2) % 10);
        if (wrote < 0 || (size_t)wrote >= size - length)
            break;
        length += (size_t)wrote;
    }
    return text;
}

int capability_parse(const char *text, struct capability_set *set)
{
    unsigned major[2], minor[2];
    int length = 0;

    *set = (struct capability_set){{0}};
    for (; *text; text += length + (text[length] == ',')) {
        if (sscanf(text, "%2u.%1u-%2u.%1u%n", &major[0], &minor[0], &major[1],
                   &minor[1], &length) != 4 ||
            (text[length] && text[length] != ',')) {
            *set = (struct capability_set){{0}};
            return -1;
        }
        capability_add(set, 10 * major[0] + minor[0],
                       10 * major[1] + minor[1]);
    }
    return 0;
}
