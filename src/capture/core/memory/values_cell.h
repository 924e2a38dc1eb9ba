/* SPDX-License-Identifier: Apache-2.0
 * The cells of a window's shadow: known bytes are tracked per 512-byte cell.
 * Most known bytes are in whole blocks that one kernel wrote and one free makes
 * unknown, so a cell has one state for all its bytes, and a mark for each byte
 * only if they differ. PyTorch's blocks are multiples of a cell
 * (kMinBlockSize, c10/cuda/CUDACachingAllocator.cpp). What a large fill wrote
 * has no bytes, but the number of a pattern (values_pattern.h): in the state of
 * a cell or, where it covers a whole granule, in that of the granule. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_VALUES_CELL_H
#define MEMSIM_CAPTURE_CORE_MEMORY_VALUES_CELL_H

#include "capture/core/memory/values.h"
#include "capture/core/memory/values_pattern.h"

#define CELL UINT64_C(512)

enum cell_state {
    CELL_CLEAR = 0, /* nothing is known, all bytes are 0 */
    CELL_KNOWN = 1, /* what the bytes at `known` would all say; they are old */
    CELL_GIVEN = VALUES_GIVEN,   /* likewise */
    CELL_COUNTS = VALUES_COUNTS, /* likewise */
    CELL_MIXED = 4,              /* each byte at `known` speaks for its own */
    CELL_ASSUMED = VALUES_ASSUMED, /* as CELL_KNOWN */
    CELL_STALE = 8,              /* CELL_CLEAR, were it not for old bytes */
    CELL_BUSY = 15,              /* a thread is about to open it */
};                               /* above: the number of a pattern */

enum granule_state {
    GRANULE_CLEAR = 0, /* none of its cells is live */
    GRANULE_OPEN = 1,  /* its cells say */
    GRANULE_BUSY = 2,  /* a thread is about to open it */
};                     /* above: the number of a pattern; no cell is live */

/* Whether something may be known, or not 0. */
static inline bool cell_is_live(unsigned char state)
{
    return state & 7;
}

unsigned char cell_state(const struct values_window *w, uint64_t cell);
unsigned char granule_state(const struct values_window *w, uint64_t granule);

/* Makes the granules of [AT, END) ones whose cells are true. */
void granules_open(const struct values_window *w, uint64_t at, uint64_t end);

/* The end of what has the same pattern, or lies in the same cell, as AT. */
uint64_t piece_end(const struct values_window *w, uint64_t at, uint64_t end);

/* The pattern of the byte at AT; NULL where it has a byte of its own, or
 * nothing is known of it. */
const struct pattern *pattern_at(const struct values_window *w, uint64_t at);

/* Makes CELL one whose bytes at `memory` and `known` are true: CLEAR or MIXED.
 */
void cell_open(const struct values_window *w, uint64_t cell);

/* The first live cell from FIRST on, or END. */
uint64_t cell_live_find(const struct values_window *w, uint64_t first,
                        uint64_t end);

/* What the bytes at `known` of [AT, END), in one cell of an open granule, say:
 * all the same, or CELL_MIXED; CELL_STALE where the cell is not live; or the
 * number of its pattern. */
unsigned char cell_knows(const struct values_window *w, uint64_t at,
                         uint64_t end);

/* The rest takes any [AT, END) of a window; but for the first, of open
 * granules. */

bool cells_are_known(const struct values_window *w, uint64_t at, uint64_t end);

/* All of it is written next, and then as KNOWN says. */
void cells_write(const struct values_window *w, uint64_t at, uint64_t end,
                 unsigned char known);

/* Nothing is known of it any more; it reads as zeros. */
void cells_forget(const struct values_window *w, uint64_t at, uint64_t end);

#endif
