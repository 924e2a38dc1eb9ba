/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/values.h"

#include <string.h>
#include <sys/mman.h>

#include "capture/core/pages.h"
#include "common/session.h"

#define PAGE         UINT64_C(4096)
#define SHADOW_SHIFT (UINT64_C(1) << 44) /* below the windows, where free */

static struct values_window windows[SESSION_DEVICES + 1]; /* last: vmm.c's */
static int window_count; /* one more than the highest one placed */

static _Thread_local struct values_log *diverted;

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

static void divert(uint64_t address, uint64_t bytes)
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

void values_place(int device, uint64_t base, uint64_t bytes)
{
    struct values_window *w = &windows[device];

    w->memory = memsim_pages_reserve(base - SHADOW_SHIFT, bytes);
    w->known = memsim_pages_reserve(0, bytes);
    w->pages = memsim_pages_reserve(0, bytes / PAGE);
    w->granules = memsim_pages_reserve(0, bytes / VALUES_GRANULE);
    if (!w->known || !w->pages || !w->granules)
        w->memory = NULL;
    w->base = base;
    w->bytes = bytes;
    if (window_count <= device)
        window_count = device + 1;
}

static struct values_window *window_of(uint64_t address)
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

    return w && w->memory ? w : NULL;
}

/* The window that holds all BYTES at ADDRESS and has a shadow. */
static struct values_window *window_of_range(uint64_t address, uint64_t bytes)
{
    struct values_window *w = window_of(address);

    return w && w->memory && bytes <= w->base + w->bytes - address ? w : NULL;
}

bool values_some(const struct values_window *w, uint64_t at, uint64_t bytes)
{
    uint64_t first = at / PAGE, last = (at + bytes - 1) / PAGE;

    return memchr(w->pages + first, 1, last - first + 1);
}

static void mark(struct values_window *w, uint64_t at, uint64_t bytes)
{
    uint64_t end = at + bytes - 1;

    memset(w->pages + at / PAGE, 1, end / PAGE - at / PAGE + 1);
    memset(w->granules + at / VALUES_GRANULE, 1,
           end / VALUES_GRANULE - at / VALUES_GRANULE + 1);
}

static void zero(void *start, uint64_t bytes)
{
    char *p = start;
    uint64_t head = -(uint64_t)p % PAGE;

    /* A page that comes back as a new one costs more than clearing it. */
    if (bytes <= VALUES_WRITE_BYTES) {
        memset(p, 0, bytes);
        return;
    }
    uint64_t whole = (bytes - head) / PAGE * PAGE;
    memset(p, 0, head);
    madvise(p + head, whole, MADV_DONTNEED);
    memset(p + head + whole, 0, bytes - head - whole);
}

/* Clears the marked pages of [AT, END), and their marks where all of a page
 * lies there. */
static void forget_pages(struct values_window *w, uint64_t at, uint64_t end)
{
    while (at < end) {
        uint64_t rest = (end - 1) / PAGE - at / PAGE + 1;
        unsigned char *page = memchr(w->pages + at / PAGE, 1, rest);

        if (!page)
            return;
        uint64_t first = (uint64_t)(page - w->pages) * PAGE, stop = first;
        while (stop < end && w->pages[stop / PAGE])
            stop += PAGE;
        if (at < first)
            at = first;
        uint64_t last = stop < end ? stop : end;
        zero(w->memory + at, last - at);
        zero(w->known + at, last - at);
        for (; first < last; first += PAGE)
            if (first >= at && first + PAGE <= last)
                w->pages[first / PAGE] = 0;
        at = last;
    }
}

/* Granule by granule from FIRST on: most of a large block was never written. */
static __attribute__((noinline)) void forget_granules(struct values_window *w,
                                                      uint64_t at, uint64_t end,
                                                      unsigned char *first)
{
    unsigned char *past = w->granules + (end - 1) / VALUES_GRANULE + 1;

    for (unsigned char *granule = first;
         (granule = memchr(granule, 1, (size_t)(past - granule))); granule++) {
        uint64_t start = (uint64_t)(granule - w->granules) * VALUES_GRANULE;
        uint64_t stop = start + VALUES_GRANULE;

        forget_pages(w, start > at ? start : at, stop < end ? stop : end);
        *granule = start < at || stop > end;
    }
}

void memsim_values_forget(uint64_t address, uint64_t bytes)
{
    struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes)
        return;
    if (diverted) {
        divert(address, bytes);
        return;
    }
    uint64_t at = address - w->base, end = at + bytes;
    unsigned char *first = w->granules + at / VALUES_GRANULE;
    if ((end - 1) / VALUES_GRANULE > at / VALUES_GRANULE || *first)
        forget_granules(w, at, end, first);
}

bool values_known(uint64_t address, uint64_t bytes)
{
    const struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes || diverted)
        return w;
    uint64_t at = address - w->base;
    return values_some(w, at, bytes) && !memchr(w->known + at, 0, bytes) &&
           !memchr(w->known + at, VALUES_COUNTS, bytes);
}

void values_mark_counts(uint64_t address, uint64_t bytes)
{
    struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes || diverted)
        return;
    mark(w, address - w->base, bytes);
    memset(w->known + (address - w->base), VALUES_COUNTS, bytes);
}

char *values_write(uint64_t address, uint64_t bytes, bool known)
{
    struct values_window *w = window_of_range(address, bytes);

    if (!w || !bytes)
        return NULL;
    if (diverted) {
        diverted->is_needed = true;
        divert(address, bytes);
        return NULL;
    }
    uint64_t at = address - w->base;
    mark(w, at, bytes);
    memset(w->known + at, known, bytes);
    return w->memory + at;
}

static void copy_from_host(uint64_t destination, const void *source,
                           uint64_t bytes)
{
    const struct values_window *w = values_window(destination);
    char *to = values_write(destination, bytes, true);

    if (!to)
        return;
    memcpy(to, source, bytes);
    memset(w->known + (destination - w->base), VALUES_GIVEN, bytes);
}

static void copy_to_host(void *destination, const struct values_window *w,
                         uint64_t at, uint64_t bytes)
{
    if (w && values_some(w, at, bytes))
        memcpy(destination, w->memory + at, bytes);
    else
        memset(destination, 0, bytes);
}

static void copy_on_device(uint64_t destination, const struct values_window *w,
                           uint64_t at, uint64_t bytes)
{
    struct values_window *to = window_of_range(destination, bytes);

    if (!to)
        return;
    if (diverted)
        diverted->is_needed = true;
    if (diverted || !w || !values_some(w, at, bytes)) {
        memsim_values_forget(destination, bytes);
        return;
    }
    uint64_t there = destination - to->base;
    mark(to, there, bytes);
    memmove(to->memory + there, w->memory + at, bytes);
    memmove(to->known + there, w->known + at, bytes);
}

void memsim_values_copy(uint64_t destination, uint64_t source, uint64_t bytes)
{
    const struct values_window *w = window_of(source);
    bool to_device = window_of(destination);

    if (!w && !to_device) {
        memmove((void *)destination, (const void *)source, bytes);
        return;
    }
    if (bytes > VALUES_COPY_BYTES) {
        memsim_values_forget(destination, bytes);
        return;
    }
    if (!bytes)
        return;
    const struct values_window *from = window_of_range(source, bytes);
    uint64_t at = from ? source - from->base : 0;
    if (!to_device)
        copy_to_host((void *)destination, from, at, bytes);
    else if (w)
        copy_on_device(destination, from, at, bytes);
    else
        copy_from_host(destination, (const void *)source, bytes);
}

void memsim_values_fill(uint64_t address, const void *value, uint64_t unit,
                        uint64_t count)
{
    if (unit * count > VALUES_WRITE_BYTES) {
        memsim_values_forget(address, unit * count);
        return;
    }
    char *to = values_write(address, unit * count, true);
    if (!to)
        return;
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * unit, value, unit);
}
