/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/memory/values.h"

#include <stdatomic.h>
#include <string.h>

#include "capture/core/base/pages.h"
#include "capture/core/memory/values_cell.h"
#include "capture/core/memory/values_few.h"
#include "common/trace/session.h"

#define SHADOW_SHIFT (UINT64_C(1) << 44) /* below the windows, where free */

static struct values_window windows[SESSION_DEVICES + 1]; /* last: vmm.c's */
static int window_count; /* one more than the highest one placed */
static struct values_window managed;

static _Thread_local struct values_log *diverted;

struct values_few values_few[VALUES_FEW];

void (*values_forgotten)(uint64_t address, uint64_t bytes);

static void divert_values(uint64_t address, uint64_t bytes)
{
    uint32_t last = diverted->count ? diverted->count - 1 : 0;
    uint64_t end =
        diverted->pieces[last].address + diverted->pieces[last].bytes;

    if (diverted->count < VALUES_PIECES &&
        (!diverted->count || address != end)) {
        diverted->pieces[diverted->count].address = address;
        diverted->pieces[diverted->count++].bytes = bytes;
        return;
    }
    if (address < diverted->pieces[last].address)
        diverted->pieces[last].address = address;
    if (address + bytes > end)
        end = address + bytes;
    diverted->pieces[last].bytes = end - diverted->pieces[last].address;
}

void values_divert(struct values_log *log)
{
    diverted = log;
}

bool values_are_diverted(void)
{
    return diverted;
}

void values_divert_whole(void)
{
    diverted->is_needed = true;
}

void values_divert_write(uint64_t address, uint64_t bytes)
{
    diverted->is_needed = true;
    divert_values(address, bytes);
}

void values_place(int device, uint64_t base, uint64_t bytes)
{
    struct values_window *w = &windows[device];

    w->memory = memsim_pages_reserve(base - SHADOW_SHIFT, bytes);
    w->known = memsim_pages_reserve(0, bytes);
    w->cells = memsim_pages_reserve(0, bytes / CELL);
    w->granules = memsim_pages_reserve(0, bytes / VALUES_GRANULE);
    if (!w->known || !w->cells || !w->granules)
        w->memory = NULL;
    values_place_real(device, base, bytes);
}

void values_place_real(int device, uint64_t base, uint64_t bytes)
{
    windows[device].base = base;
    windows[device].bytes = bytes;
    if (window_count <= device)
        window_count = device + 1;
}

void values_place_managed(uint64_t base, uint64_t bytes)
{
    managed.memory = (char *)base;
    managed.bytes = bytes;
    managed.base = base;
}

static inline bool is_managed(const struct values_window *w)
{
    return !w->cells;
}

/* Each launch asks: inline. */
static inline __attribute__((always_inline)) struct values_window *
window_of(uint64_t address)
{
    for (int i = 0; i < window_count; i++)
        if (address - windows[i].base < windows[i].bytes)
            return &windows[i];
    return NULL;
}

bool memsim_values_is_device(uint64_t address)
{
    return window_of(address);
}

const struct values_window *values_window(uint64_t address)
{
    const struct values_window *w = window_of(address);

    if (!w && address - managed.base < managed.bytes)
        return &managed;
    return w && w->memory ? w : NULL;
}

/* The window that holds all BYTES at ADDRESS and has a shadow. */
static inline __attribute__((always_inline)) struct values_window *
window_of_range(uint64_t address, uint64_t bytes)
{
    struct values_window *w = window_of(address);

    if (!w && address - managed.base < managed.bytes)
        w = &managed;
    return w && w->memory && bytes <= w->base + w->bytes - address ? w : NULL;
}

bool values_may_hold(uint64_t address)
{
    const struct values_window *w = window_of(address);

    return w && w->memory && w->granules[(address - w->base) / VALUES_GRANULE];
}

bool values_some(const struct values_window *w, uint64_t at, uint64_t bytes)
{
    uint64_t past = (at + bytes - 1) / CELL + 1;

    if (is_managed(w))
        return true;
    for (uint64_t g = at / VALUES_GRANULE; g * VALUES_GRANULE < at + bytes; g++)
        if (w->granules[g] > GRANULE_OPEN)
            return true;
    return cell_live_find(w, at / CELL, past) < past;
}

const char *values_at(const struct values_window *w, uint64_t at,
                      uint64_t bytes)
{
    if (is_managed(w))
        return w->memory + at;
    granules_open(w, at, at + bytes);
    for (uint64_t cell = at / CELL; cell <= (at + bytes - 1) / CELL; cell++)
        if (w->cells[cell] >= CELL_STALE)
            cell_open(w, cell);
    return w->memory + at;
}

unsigned char values_known_at(const struct values_window *w, uint64_t at)
{
    if (is_managed(w))
        return CELL_KNOWN;
    const struct pattern *pattern = pattern_at(w, at);
    if (pattern)
        return pattern->mark;
    unsigned char state = cell_state(w, at / CELL);
    if (!cell_is_live(state))
        return 0;
    return state == CELL_MIXED ? w->known[at] : state;
}

/* The place of the last uniform random numbers. */
static _Atomic uint64_t uniform_address, uniform_bytes;

void values_set_uniform(uint64_t address, uint64_t bytes)
{
    if (diverted)
        return;
    uniform_bytes = bytes;
    uniform_address = address;
}

bool values_are_uniform(uint64_t address, uint64_t bytes)
{
    return !diverted && uniform_address == address && uniform_bytes == bytes;
}

static inline void uniform_end(uint64_t address, uint64_t bytes)
{
    uint64_t first =
        atomic_load_explicit(&uniform_address, memory_order_relaxed);

    if (first && address < first + uniform_bytes && first < address + bytes)
        uniform_address = 0;
}

static bool some_live(const struct values_window *w, uint64_t at, uint64_t end)
{
    return at < end && values_some(w, at, end - at);
}

/* The first granule from FIRST on that is not clear, or PAST. */
static uint64_t granule_find(const struct values_window *w, uint64_t first,
                             uint64_t past)
{
    while (first < past && w->granules[first] == GRANULE_CLEAR)
        first++;
    return first;
}

/* The part of a granule in [AT, END). One that ends within it may leave nothing
 * there; who writes there meanwhile marks it after its cells. */
static void forget_granule(struct values_window *w, uint64_t granule,
                           uint64_t at, uint64_t end)
{
    uint64_t start = granule * VALUES_GRANULE, stop = start + VALUES_GRANULE;
    bool is_whole = at <= start && stop <= end;

    if (!is_whole || !is_pattern(granule_state(w, granule))) {
        granules_open(w, start, stop);
        cells_forget(w, start > at ? start : at, stop < end ? stop : end);
    }
    __atomic_exchange_n(&w->granules[granule], GRANULE_CLEAR, __ATOMIC_SEQ_CST);
    if (some_live(w, start, at) || some_live(w, end, stop))
        w->granules[granule] = GRANULE_OPEN;
}

/* Most of a large block was never written. */
static __attribute__((noinline)) void forget_granules(struct values_window *w,
                                                      uint64_t at, uint64_t end)
{
    uint64_t granule = at / VALUES_GRANULE;
    uint64_t past = (end - 1) / VALUES_GRANULE + 1;

    while ((granule = granule_find(w, granule, past)) < past)
        forget_granule(w, granule++, at, end);
}

void memsim_values_forget(uint64_t address, uint64_t bytes)
{
    struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes || is_managed(w))
        return;
    if (diverted) {
        divert_values(address, bytes);
        return;
    }
    uniform_end(address, bytes);
    values_few_end(address);
    if (values_forgotten)
        values_forgotten(address, bytes);
    uint64_t at = address - w->base, end = at + bytes;
    uint64_t granule = at / VALUES_GRANULE;
    if ((end - 1) / VALUES_GRANULE > granule)
        forget_granules(w, at, end);
    else if (w->granules[granule]) {
        granules_open(w, at, end);
        cells_forget(w, at, end);
    }
}

/* Whether a kernel or a fill made some of the bytes of CELL. */
static bool is_made(const struct values_window *w, uint64_t cell)
{
    unsigned char state = cell_state(w, cell);
    const unsigned char *known = w->known + cell * CELL;

    if (state != CELL_MIXED)
        return cell_is_live(state) && state != CELL_GIVEN;
    return memchr(known, CELL_KNOWN, CELL) || memchr(known, CELL_ASSUMED, CELL);
}

static void cells_forget_made(const struct values_window *w, uint64_t cell,
                              uint64_t past)
{
    while ((cell = cell_live_find(w, cell, past)) < past) {
        if (is_made(w, cell))
            memsim_values_forget(w->base + cell * CELL, CELL);
        cell++;
    }
}

void values_forget_made(uint64_t address, uint64_t bytes)
{
    const struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes || diverted || is_managed(w))
        return;
    uint64_t at = address - w->base, end = at + bytes, stop;
    for (; at < end; at = stop) {
        stop = (at / VALUES_GRANULE + 1) * VALUES_GRANULE;
        stop = stop < end ? stop : end;
        if (is_pattern(granule_state(w, at / VALUES_GRANULE)))
            memsim_values_forget(w->base + at, stop - at);
        else if (w->granules[at / VALUES_GRANULE])
            cells_forget_made(w, at / CELL, (stop - 1) / CELL + 1);
    }
}

static char *write_at(const struct values_window *w, uint64_t at,
                      uint64_t bytes, unsigned char known)
{
    uint64_t end = at + bytes;

    if (is_managed(w))
        return w->memory + at;
    uniform_end(w->base + at, bytes);
    values_few_end(w->base + at);
    granules_open(w, at, end);
    cells_write(w, at, end, known);
    memset(w->granules + at / VALUES_GRANULE, GRANULE_OPEN,
           (end - 1) / VALUES_GRANULE - at / VALUES_GRANULE + 1);
    return w->memory + at;
}

bool values_known(uint64_t address, uint64_t bytes)
{
    const struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes || diverted || is_managed(w))
        return w;
    uint64_t at = address - w->base;
    return cells_are_known(w, at, at + bytes);
}

static void mark_as(uint64_t address, uint64_t bytes, unsigned char mark)
{
    struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes || diverted || is_managed(w))
        return;
    values_at(w, address - w->base, bytes);
    write_at(w, address - w->base, bytes, mark);
}

void values_mark_counts(uint64_t address, uint64_t bytes)
{
    mark_as(address, bytes, VALUES_COUNTS);
}

void values_mark_assumed(uint64_t address, uint64_t bytes)
{
    if (values_known(address, bytes))
        mark_as(address, bytes, VALUES_ASSUMED);
}

char *values_write_as(uint64_t address, uint64_t bytes, unsigned char known)
{
    struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes)
        return NULL;
    if (diverted) {
        values_divert_write(address, bytes);
        return NULL;
    }
    return write_at(w, address - w->base, bytes, known);
}

char *values_write(uint64_t address, uint64_t bytes, bool known)
{
    return values_write_as(address, bytes, known);
}

static void copy_from_host(uint64_t destination, const void *source,
                           uint64_t bytes)
{
    char *to = values_write_as(destination, bytes, VALUES_GIVEN);

    if (to)
        memcpy(to, source, bytes);
}

/* TO has zeros already where IS_CLEAR. */
static void piece_to_host(char *to, const struct values_window *w, uint64_t at,
                          uint64_t bytes, bool is_clear)
{
    static const unsigned char zeros[PATTERN_BYTES];
    const struct pattern *pattern = is_managed(w) ? NULL : pattern_at(w, at);

    if (!pattern)
        memcpy(to, values_at(w, at, bytes), bytes);
    else if (!is_clear || memcmp(pattern->bytes, zeros, sizeof zeros) != 0)
        pattern_write(pattern, at, to, bytes);
}

static void copy_to_host(char *to, const struct values_window *w, uint64_t at,
                         uint64_t bytes, bool is_clear)
{
    uint64_t end = at + bytes, stop;

    if (!w || !values_some(w, at, bytes)) {
        memset(to, 0, is_clear ? 0 : bytes);
        return;
    }
    for (; at < end; to += stop - at, at = stop) {
        stop = is_managed(w) ? end : piece_end(w, at, end);
        piece_to_host(to, w, at, stop - at, is_clear);
    }
}

/* Mostly zeros, which are to take no host memory. */
static void copy_large_to_host(char *destination, const struct values_window *w,
                               uint64_t at, uint64_t bytes)
{
    memsim_pages_clear(destination, bytes);
    for (uint64_t done = 0, piece; w && done < bytes; done += piece) {
        piece = bytes - done;
        if (piece > VALUES_COPY_BYTES)
            piece = VALUES_COPY_BYTES;
        copy_to_host(destination + done, w, at + done, piece, true);
    }
}

/* BYTES of what PATTERN has at AT. */
static void copy_pattern(uint64_t destination, const struct pattern *pattern,
                         uint64_t at, uint64_t bytes)
{
    unsigned char value[PATTERN_BYTES];

    pattern_write(pattern, at, value, sizeof value);
    const struct pattern moved =
        pattern_make(destination, value, sizeof value, pattern->mark);
    values_fill_pattern(destination, &moved, bytes);
}

/* BYTES of cells of which cell_knows() says the same. */
static void copy_alike(uint64_t destination, const struct values_window *w,
                       uint64_t at, uint64_t bytes, unsigned char known)
{
    if (known == CELL_STALE) {
        memsim_values_forget(destination, bytes);
        return;
    }
    if (is_pattern(known)) {
        copy_pattern(destination, pattern_of(known), at, bytes);
        return;
    }
    char *to =
        values_write_as(destination, bytes, known == CELL_MIXED ? 0 : known);
    const struct values_window *there = window_of(destination);
    if (!to)
        return;
    memmove(to, w->memory + at, bytes);
    if (known == CELL_MIXED)
        memmove(there->known + (destination - there->base), w->known + at,
                bytes);
}

static void copy_on_device(uint64_t destination, const struct values_window *w,
                           uint64_t at, uint64_t bytes)
{
    uint64_t start = at, end = at + bytes, stop;
    unsigned char known = CELL_STALE, next;

    if (!window_of_range(destination, bytes))
        return;
    if (diverted)
        diverted->is_needed = true;
    if (diverted || !w || !values_some(w, at, bytes)) {
        memsim_values_forget(destination, bytes);
        return;
    }
    granules_open(w, at, end);
    for (; at < end; at = stop) {
        stop = (at / CELL + 1) * CELL;
        stop = stop < end ? stop : end;
        next = cell_knows(w, at, stop);
        if (next != known) {
            copy_alike(destination, w, start, at - start, known);
            destination += at - start;
            start = at;
            known = next;
        }
    }
    copy_alike(destination, w, start, end - start, known);
}

/* Copies what is the same all over, of any size. */
static bool copy_constant(uint64_t destination, uint64_t source, uint64_t bytes)
{
    unsigned char value[PATTERN_BYTES];
    uint64_t unit = (bytes | PATTERN_BYTES) & -(bytes | PATTERN_BYTES);
    unsigned char mark = values_constant(source, bytes, unit, value);

    if (mark)
        values_fill_as(destination, value, unit, bytes / unit, mark);
    return mark;
}

void memsim_values_copy(uint64_t destination, uint64_t source, uint64_t bytes)
{
    const struct values_window *w = window_of(source);
    bool to_device = window_of(destination);

    if (!w && !to_device) {
        memmove((void *)destination, (const void *)source, bytes);
        return;
    }
    if (bytes > VALUES_WRITE_BYTES && to_device &&
        copy_constant(destination, source, bytes))
        return;
    if (bytes > VALUES_COPY_BYTES && to_device) {
        memsim_values_forget(destination, bytes);
        return;
    }
    if (!bytes)
        return;
    const struct values_window *from = window_of_range(source, bytes);
    uint64_t at = from ? source - from->base : 0;
    if (bytes > VALUES_COPY_BYTES) {
        copy_large_to_host((char *)destination, from, at, bytes);
        return;
    }
    if (!to_device)
        copy_to_host((char *)destination, from, at, bytes, false);
    else if (w)
        copy_on_device(destination, from, at, bytes);
    else
        copy_from_host(destination, (const void *)source, bytes);
}
