/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/base/pages.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

#define KEEP_BYTES (UINT64_C(1) << 32)

static void *address_reserve(uint64_t want, uint64_t bytes, int protection)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *p = MAP_FAILED;

    if (want)
        p = mmap((void *)want, bytes, protection, flags | MAP_FIXED_NOREPLACE,
                 -1, 0);
    if (p == MAP_FAILED)
        p = mmap(NULL, bytes, protection, flags, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Those that were reserved first: memsim's own. Pinned memory may follow. */
static struct {
    uint64_t start, past;
} reserved[256];
static _Atomic uint32_t reserved_count;

void *memsim_pages_reserve(uint64_t want, uint64_t bytes)
{
    void *p = address_reserve(want, bytes, PROT_READ | PROT_WRITE);
    uint32_t i = p ? atomic_fetch_add(&reserved_count, 1) : UINT32_MAX;

    if (i < sizeof reserved / sizeof *reserved) {
        reserved[i].start = (uint64_t)p;
        reserved[i].past = (uint64_t)p + bytes;
    }
    return p;
}

bool pages_reserved(uint64_t start, uint64_t past)
{
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (reserved[i].start < past && start < reserved[i].past)
            return true;
    return false;
}

void *pages_reserve_untouchable(uint64_t want, uint64_t bytes)
{
    return address_reserve(want, bytes, PROT_NONE);
}

void *memsim_pages_keep(size_t bytes)
{
    static _Atomic(char *) base;
    static _Atomic uint64_t used;
    char *start = atomic_load(&base);

    if (!start) {
        char *mine = memsim_pages_reserve(0, KEEP_BYTES);

        if (!mine)
            return NULL;
        if (!atomic_compare_exchange_strong(&base, &start, mine))
            munmap(mine, KEEP_BYTES);
        else
            start = mine;
    }
    uint64_t at = atomic_fetch_add(&used, (bytes + 15) & ~(size_t)15);
    return at + bytes <= KEEP_BYTES ? start + at : NULL;
}

/* MADV_FREE refuses all but private anonymous memory, of which alone
 * MADV_DONTNEED makes zeros (madvise(2)). */
static bool pages_drop(char *p, uint64_t bytes)
{
    return !madvise(p, bytes, MADV_FREE) && !madvise(p, bytes, MADV_DONTNEED);
}

void memsim_pages_clear(void *p, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    char *start = p, *end = start + bytes;
    char *first = (char *)(((uint64_t)start + page - 1) & ~(page - 1));
    char *past = (char *)((uint64_t)end & ~(page - 1));

    if (first >= past || !pages_drop(first, (uint64_t)(past - first))) {
        memset(p, 0, bytes);
        return;
    }
    memset(start, 0, (size_t)(first - start));
    memset(past, 0, (size_t)(end - past));
}

static bool all_zero(const char *p, const char *past)
{
    while (p < past && !*p)
        p++;
    return p == past;
}

/* None of COUNT pages from FIRST on is in memory or swapped out
 * (Documentation/admin-guide/mm/pagemap.rst of Linux: bits 63 and 62). */
static bool none_is_there(uint64_t first, uint64_t count)
{
    uint64_t entries[1024], there = 0;
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    if (map < 0)
        return false;
    while (count && !there) {
        uint64_t some = count < 1024 ? count : 1024;

        if (pread(map, entries, some * 8, (off_t)(first * 8)) !=
            (ssize_t)(some * 8))
            break;
        for (uint64_t i = 0; i < some; i++)
            there |= entries[i] >> 62;
        first += some;
        count -= some;
    }
    close(map);
    return !count && !there;
}

bool memsim_pages_untouched(const void *p, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const char *start = p, *end = start + bytes;
    char *first = (char *)(((uint64_t)start + page - 1) & ~(page - 1));
    char *past = (char *)((uint64_t)end & ~(page - 1));

    /* MADV_FREE changes nothing here, and says what kind of memory it is. */
    return first < past && all_zero(start, first) && all_zero(past, end) &&
           none_is_there((uint64_t)first / page,
                         (uint64_t)(past - first) / page) &&
           !madvise(first, (uint64_t)(past - first), MADV_FREE);
}
