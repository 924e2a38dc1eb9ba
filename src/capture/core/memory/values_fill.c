/* SPDX-License-Identifier: Apache-2.0
 * Fills, and memory that is the same all over. */
#include <string.h>

#include "capture/core/memory/values.h"
#include "capture/core/memory/values_cell.h"
#include "capture/core/memory/values_few.h"

static bool is_zero(const void *value, uint64_t bytes)
{
    const char *byte = value;

    while (bytes && !*byte)
        bytes--, byte++;
    return !bytes;
}

/* Bytes of their own. */
static void bytes_fill(uint64_t address, const struct pattern *pattern,
                       uint64_t bytes)
{
    char *to = values_write_as(address, bytes, pattern->mark);

    if (to)
        pattern_write(pattern, address, to, bytes);
}

/* Whole cells of W, of which nothing is known, get the pattern NUMBER. */
static void cells_fill(const struct values_window *w, uint64_t at, uint64_t end,
                       unsigned char number)
{
    for (uint64_t stop; at < end; at = stop) {
        uint64_t granule = at / VALUES_GRANULE;

        stop = (granule + 1) * VALUES_GRANULE;
        stop = stop < end ? stop : end;
        if (stop - at == VALUES_GRANULE) {
            w->granules[granule] = number;
            continue;
        }
        memset(w->cells + at / CELL, number, (stop - at) / CELL);
        w->granules[granule] = GRANULE_OPEN;
    }
}

void values_fill_pattern(uint64_t address, const struct pattern *pattern,
                         uint64_t bytes)
{
    const struct values_window *w = values_window(address);
    unsigned char number = bytes < 2 * CELL ? 0 : pattern_number(pattern);

    if (!number && bytes <= VALUES_WRITE_BYTES) {
        bytes_fill(address, pattern, bytes);
        return;
    }
    memsim_values_forget(address, bytes);
    if (!w || !w->cells || bytes > w->base + w->bytes - address || !number)
        return;
    uint64_t at = address - w->base, end = at + bytes;
    uint64_t first = (at + CELL - 1) / CELL * CELL, last = end / CELL * CELL;
    bytes_fill(address, pattern, first - at);
    cells_fill(w, first, last, number);
    bytes_fill(w->base + last, pattern, end - last);
}

void values_fill_as(uint64_t address, const void *value, uint64_t unit,
                    uint64_t count, unsigned char mark)
{
    const struct pattern pattern = pattern_make(address, value, unit, mark);
    uint64_t bytes = unit * count;

    if (bytes <= VALUES_WRITE_BYTES) {
        bytes_fill(address, &pattern, bytes);
        return;
    }
    if (values_are_diverted()) {
        values_divert_write(address, bytes);
        return;
    }
    values_fill_pattern(address, &pattern, bytes);
    if (is_zero(value, unit))
        values_few_set(address, bytes, (struct few){0, true});
}

void memsim_values_fill(uint64_t address, const void *value, uint64_t unit,
                        uint64_t count)
{
    values_fill_as(address, value, unit, count, true);
}

bool values_give_integers(uint64_t destination, uint64_t source, uint64_t bytes,
                          uint64_t unit)
{
    const char *from = (const char *)source;

    if (unit && bytes % unit == 0 && !memcmp(from, from + unit, bytes - unit)) {
        values_fill_as(destination, from, unit, bytes / unit, VALUES_GIVEN);
        return true;
    }
    char *to = unit && bytes <= VALUES_INTEGERS_BYTES
                   ? values_write_as(destination, bytes, VALUES_GIVEN)
                   : NULL;
    if (to)
        memcpy(to, from, bytes);
    return to;
}

/* Whether [AT, END), in one cell that has no pattern, is known and has what
 * PATTERN would write. */
static bool part_has(const struct values_window *w, uint64_t at, uint64_t end,
                     const struct pattern *pattern)
{
    unsigned char bytes[CELL];

    if (!cells_are_known(w, at, end))
        return false;
    pattern_write(pattern, at, bytes, end - at);
    return !memcmp(w->memory + at, bytes, end - at);
}

/* The pattern that the first UNIT bytes at AT would make; false where nothing
 * is known of them. */
static bool pattern_begin(const struct values_window *w, uint64_t at,
                          uint64_t unit, struct pattern *pattern)
{
    const struct pattern *own = pattern_at(w, at);
    unsigned char value[PATTERN_BYTES];

    if (!values_is_known(values_known_at(w, at)))
        return false;
    if (own)
        pattern_write(own, at, value, unit);
    else
        memcpy(value, w->memory + at, unit);
    *pattern = pattern_make(at, value, unit, true);
    return true;
}

unsigned char values_constant(uint64_t address, uint64_t bytes, uint64_t unit,
                              void *value)
{
    const struct values_window *w = values_window(address);
    struct pattern pattern;
    bool is_assumed = false;

    if (!w || !w->cells || values_are_diverted() || bytes < unit ||
        bytes > w->base + w->bytes - address)
        return 0;
    uint64_t at = address - w->base, end = at + bytes, stop;
    if (!pattern_begin(w, at, unit, &pattern))
        return 0;
    for (; at < end; at = stop) {
        const struct pattern *own = pattern_at(w, at);

        stop = piece_end(w, at, end);
        if (own ? !values_is_known(own->mark) ||
                      memcmp(own->bytes, pattern.bytes, PATTERN_BYTES) != 0
                : !part_has(w, at, stop, &pattern))
            return 0;
        is_assumed |= values_known_at(w, at) == VALUES_ASSUMED;
    }
    pattern_write(&pattern, address, value, unit);
    return is_assumed ? VALUES_ASSUMED : 1;
}
