/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/host_pages.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/core/base/pages.h"
#include "common/base/text_begins.h"

#define PAGE UINT64_C(4096)

/* --- files of /proc ------------------------------------------------------- */

/* A file that is read line by line; a longer line is cut. */
struct lines {
    int fd;
    size_t begin, end;
    char text[4096];
};

static bool lines_open(struct lines *l, const char *path)
{
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
    l->begin = l->end = 0;
    return l->fd >= 0;
}

/* The next line, or NULL: then the file is closed. */
static char *lines_next(struct lines *l)
{
    for (;;) {
        char *line = l->text + l->begin;
        char *end = memchr(line, '\n', l->end - l->begin);

        if (end) {
            *end = '\0';
            l->begin = (size_t)(end + 1 - l->text);
            return line;
        }
        l->end -= l->begin;
        memmove(l->text, line, l->end);
        l->begin = 0;
        if (l->end == sizeof l->text)
            l->end = 0;
        ssize_t n = read(l->fd, l->text + l->end, sizeof l->text - l->end);
        if (n <= 0) {
            close(l->fd);
            return NULL;
        }
        l->end += (size_t)n;
    }
}

/* "Rss:      123 kB" where LINE begins with NAME; else 0. */
static uint64_t line_bytes(const char *line, const char *name)
{
    const char *colon = !text_begins(line, name) ? NULL : strchr(line, ':');

    return colon ? strtoull(colon + 1, NULL, 10) << 10 : 0;
}

static uint64_t file_bytes(const char *path, const char *name)
{
    struct lines lines;
    uint64_t bytes = 0;

    if (!lines_open(&lines, path))
        return 0;
    for (const char *line; (line = lines_next(&lines));)
        bytes += line_bytes(line, name);
    return bytes;
}

/* --- resident pages ------------------------------------------------------- */

static bool forked;

bool host_pages_forked(void)
{
    return forked;
}

void host_pages_after_fork(void)
{
    forked = true;
}

void host_pages_alone(void)
{
    forked = false;
}

uint64_t host_pages_resident(void)
{
    return forked ? file_bytes("/proc/self/smaps_rollup", "Private_")
                  : file_bytes("/proc/self/status", "VmRSS");
}

uint64_t host_pages_peak(void)
{
    return file_bytes("/proc/self/status", "VmHWM");
}

/* Bit 63 of a page's entry: it is in memory, and this process has it
 * (Documentation/admin-guide/mm/pagemap.rst of Linux). */
static uint64_t pages_present(int map, uint64_t first, uint64_t count)
{
    uint64_t entries[1024], there = 0;

    while (count) {
        uint64_t some = count < 1024 ? count : 1024;

        if (pread(map, entries, some * 8, (off_t)(first * 8)) !=
            (ssize_t)(some * 8))
            break;
        for (uint64_t i = 0; i < some; i++)
            there += entries[i] >> 63;
        first += some;
        count -= some;
    }
    return there;
}

static uint64_t pages_within(const struct ranges *r, bool tensors_too)
{
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    uint64_t pages = 0, seen = 0;

    for (uint64_t i = 0; map >= 0 && r->all && seen < r->count; i++) {
        const struct range *u = &r->all[i];
        uint64_t first = u->address / PAGE;

        seen += u->bytes != 0;
        if (u->bytes && (tensors_too || u->kind != SESSION_HOST_TENSORS))
            pages += pages_present(
                map, first, (u->address + u->bytes - 1) / PAGE + 1 - first);
    }
    if (map >= 0)
        close(map);
    return pages * PAGE;
}

uint64_t host_pages_within(const struct ranges *ranges)
{
    return pages_within(ranges, true);
}

/* --- memsim's own --------------------------------------------------------- */

/* The folder of memsim's libraries, with a slash at its end; "": not known. */
static void libraries_folder(char *out, size_t size)
{
    Dl_info info;
    const char *end = NULL;

    *out = '\0';
    if (dladdr((void *)libraries_folder, &info) && info.dli_fname)
        end = strrchr(info.dli_fname, '/');
    if (end && (size_t)(end + 1 - info.dli_fname) < size) {
        memcpy(out, info.dli_fname, (size_t)(end + 1 - info.dli_fname));
        out[end + 1 - info.dli_fname] = '\0';
    }
}

/* Whether LINE of smaps begins a mapping of memsim's, in one of FOLDERS:
 * "start-end flags offset device inode path". Sets *IS_FIRST where it begins
 * one at all. */
static bool mapping_is_own(const char *line, const char *const folders[2],
                           bool *is_first)
{
    char *end;
    uint64_t start = strtoull(line, &end, 16);

    *is_first = *end == '-' && end > line;
    if (!*is_first)
        return false;
    uint64_t past = strtoull(end + 1, NULL, 16);
    const char *path = strchr(end, '/');
    if (!path)
        return pages_reserved(start, past);
    return (*folders[0] && strstr(path, folders[0])) ||
           strstr(path, folders[1]);
}

/* The kernel joins neighbours: pinned memory may lie in a mapping with what
 * memsim reserved for itself. */
uint64_t host_pages_own(const struct ranges *ranges, const char *directory)
{
    struct lines lines;
    char folder[512];
    const char *const folders[2] = {folder, directory};
    bool own = false, is_first;
    uint64_t bytes = 0, pinned = pages_within(ranges, false);

    libraries_folder(folder, sizeof folder);
    if (!lines_open(&lines, "/proc/self/smaps"))
        return 0;
    for (const char *line; (line = lines_next(&lines));) {
        bool mine = mapping_is_own(line, folders, &is_first);

        own = is_first ? mine : own;
        if (own)
            bytes += line_bytes(line, "Rss");
    }
    return bytes > pinned ? bytes - pinned : 0;
}
