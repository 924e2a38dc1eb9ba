/* SPDX-License-Identifier: Apache-2.0
 * Bytes that repeat, as a fill writes them. A cell or a granule (values_cell.h)
 * in which all bytes do has the number of a pattern instead of bytes of its
 * own: so a fill of any size takes no memory, and what it covers is known to
 * be the same all over. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_VALUES_PATTERN_H
#define MEMSIM_CAPTURE_CORE_MEMORY_VALUES_PATTERN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PATTERN_BYTES 16u
#define PATTERNS      210u /* numbers from 17 on, but multiples of 8 */

/* The byte at an address is BYTES[address % PATTERN_BYTES], and known as MARK
 * says (values.h). */
struct pattern {
    unsigned char bytes[PATTERN_BYTES];
    unsigned char mark;
};

extern struct pattern patterns[PATTERNS];

static inline bool is_pattern(unsigned char number)
{
    return number > 16;
}

static inline const struct pattern *pattern_of(unsigned char number)
{
    return &patterns[(number - 16u) / 8 * 7 + number % 8 - 1];
}

/* The number of PATTERN, which is kept for ever; 0 where there are too many. */
unsigned char pattern_number(const struct pattern *pattern);

/* What UNIT bytes (a power of 2, at most PATTERN_BYTES) at VALUE, repeated from
 * ADDRESS on, are. */
struct pattern pattern_make(uint64_t address, const void *value, uint64_t unit,
                            unsigned char mark);

/* Fills BYTES at ADDRESS, not diverted (values.h). Of what has no number,
 * nothing is known where it is large. */
void values_fill_pattern(uint64_t address, const struct pattern *pattern,
                         uint64_t bytes);

/* Writes what PATTERN has at ADDRESS to the BYTES at TO. */
void pattern_write(const struct pattern *pattern, uint64_t address, void *to,
                   uint64_t bytes);

#endif
