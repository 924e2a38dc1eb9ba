/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/values_cell.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE UINT64_C(4096)

unsigned char cell_state(const struct values_window *w, uint64_t cell)
{
    unsigned char state;

    do
        state = __atomic_load_n(&w->cells[cell], __ATOMIC_ACQUIRE);
    while (state == CELL_BUSY);
    return state;
}

unsigned char granule_state(const struct values_window *w, uint64_t granule)
{
    unsigned char state;

    do
        state = __atomic_load_n(&w->granules[granule], __ATOMIC_ACQUIRE);
    while (state == GRANULE_BUSY);
    return state;
}

static void granule_open(const struct values_window *w, uint64_t granule)
{
    unsigned char state = granule_state(w, granule);

    while (is_pattern(state)) {
        if (!__atomic_compare_exchange_n(&w->granules[granule], &state,
                                         GRANULE_BUSY, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED)) {
            state = granule_state(w, granule);
            continue;
        }
        memset(w->cells + granule * (VALUES_GRANULE / CELL), state,
               VALUES_GRANULE / CELL);
        __atomic_store_n(&w->granules[granule], GRANULE_OPEN, __ATOMIC_RELEASE);
        return;
    }
}

void granules_open(const struct values_window *w, uint64_t at, uint64_t end)
{
    for (uint64_t g = at / VALUES_GRANULE; g * VALUES_GRANULE < end; g++)
        if (w->granules[g] > GRANULE_OPEN)
            granule_open(w, g);
}

const struct pattern *pattern_at(const struct values_window *w, uint64_t at)
{
    unsigned char state = granule_state(w, at / VALUES_GRANULE);

    if (!is_pattern(state))
        state = cell_state(w, at / CELL);
    return is_pattern(state) ? pattern_of(state) : NULL;
}

uint64_t piece_end(const struct values_window *w, uint64_t at, uint64_t end)
{
    uint64_t unit = is_pattern(granule_state(w, at / VALUES_GRANULE))
                        ? VALUES_GRANULE
                        : CELL;
    uint64_t stop = (at / unit + 1) * unit;

    return stop < end ? stop : end;
}

/* The bytes of CELL, whose STATE is not CELL_MIXED, and what is known of each.
 */
static void cell_fill(const struct values_window *w, uint64_t cell,
                      unsigned char state)
{
    char *memory = w->memory + cell * CELL;
    unsigned char mark = state == CELL_STALE ? 0 : state;

    if (state == CELL_STALE) {
        memset(memory, 0, CELL);
    } else if (is_pattern(state)) {
        pattern_write(pattern_of(state), 0, memory, CELL);
        mark = pattern_of(state)->mark;
    }
    memset(w->known + cell * CELL, mark, CELL);
}

/* Two threads may have memory in the cell, and both may come to open it. */
void cell_open(const struct values_window *w, uint64_t cell)
{
    unsigned char state = cell_state(w, cell);

    while (state != CELL_CLEAR && state != CELL_MIXED) {
        if (!__atomic_compare_exchange_n(&w->cells[cell], &state, CELL_BUSY,
                                         false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED)) {
            state = cell_state(w, cell);
            continue;
        }
        cell_fill(w, cell, state);
        __atomic_store_n(&w->cells[cell],
                         state == CELL_STALE ? CELL_CLEAR : CELL_MIXED,
                         __ATOMIC_RELEASE);
        return;
    }
}

uint64_t cell_live_find(const struct values_window *w, uint64_t first,
                        uint64_t end)
{
    typedef uint64_t word __attribute__((may_alias, aligned(1)));

    for (; end - first >= 32; first += 32) {
        const word *four = (const word *)(w->cells + first);

        if ((four[0] | four[1] | four[2] | four[3]) &
            UINT64_C(0x0707070707070707))
            break;
    }
    while (first < end && !cell_is_live(w->cells[first]))
        first++;
    return first;
}

unsigned char cell_knows(const struct values_window *w, uint64_t at,
                         uint64_t end)
{
    unsigned char state = cell_state(w, at / CELL);
    const unsigned char *known = w->known + at;

    if (!cell_is_live(state))
        return CELL_STALE;
    if (state != CELL_MIXED)
        return state;
    return memcmp(known, known + 1, end - at - 1) ? CELL_MIXED : *known;
}

static uint64_t cell_end(uint64_t at, uint64_t end)
{
    uint64_t stop = (at / CELL + 1) * CELL;

    return stop < end ? stop : end;
}

/* [AT, END), in one cell that has no pattern. */
static bool part_is_known(const struct values_window *w, uint64_t at,
                          uint64_t end)
{
    unsigned char state = cell_state(w, at / CELL);

    if (state == CELL_MIXED)
        return !memchr(w->known + at, 0, end - at) &&
               !memchr(w->known + at, VALUES_COUNTS, end - at);
    return state == CELL_KNOWN || state == CELL_GIVEN || state == CELL_ASSUMED;
}

bool cells_are_known(const struct values_window *w, uint64_t at, uint64_t end)
{
    for (uint64_t stop; at < end; at = stop) {
        const struct pattern *pattern = pattern_at(w, at);

        stop = piece_end(w, at, end);
        if (pattern ? !values_is_known(pattern->mark)
                    : !part_is_known(w, at, stop))
            return false;
    }
    return true;
}

void cells_write(const struct values_window *w, uint64_t at, uint64_t end,
                 unsigned char known)
{
    for (uint64_t stop; at < end; at = stop) {
        uint64_t cell = at / CELL;

        stop = cell_end(at, end);
        if (known && stop - at == CELL) {
            stop = end / CELL * CELL;
            memset(w->cells + cell, known, stop / CELL - cell);
        } else if (!known || w->cells[cell] != known) {
            cell_open(w, cell);
            memset(w->known + at, known, stop - at);
            w->cells[cell] = CELL_MIXED;
        }
    }
}

/* Within one cell, which stays open. */
static void part_forget(const struct values_window *w, uint64_t at,
                        uint64_t end)
{
    if (at >= end)
        return;
    cell_open(w, at / CELL);
    memset(w->memory + at, 0, end - at);
    memset(w->known + at, 0, end - at);
}

/* Whole cells. The pages of many go back to the host. */
static void whole_forget(const struct values_window *w, uint64_t first,
                         uint64_t last)
{
    uint64_t at = (first * CELL + PAGE - 1) & ~(PAGE - 1);
    uint64_t end = last * CELL & ~(PAGE - 1);

    memset(w->cells + first, CELL_STALE, last - first);
    if ((last - first) * CELL <= VALUES_WRITE_BYTES)
        return;
    madvise(w->memory + at, end - at, MADV_DONTNEED);
    madvise(w->known + at, end - at, MADV_DONTNEED);
    memset(w->cells + at / CELL, CELL_CLEAR, (end - at) / CELL);
}

void cells_forget(const struct values_window *w, uint64_t at, uint64_t end)
{
    uint64_t past = (end - 1) / CELL + 1, cell = at / CELL;

    while ((cell = cell_live_find(w, cell, past)) < past) {
        uint64_t first = cell;

        while (cell < past && cell_is_live(w->cells[cell]))
            cell++;
        uint64_t start = first * CELL > at ? first * CELL : at;
        uint64_t stop = cell * CELL < end ? cell * CELL : end;
        uint64_t whole = (start + CELL - 1) / CELL, last = stop / CELL;
        if (whole > last) {
            part_forget(w, start, stop);
            continue;
        }
        part_forget(w, start, whole * CELL);
        whole_forget(w, whole, last);
        part_forget(w, last * CELL, stop);
    }
}
