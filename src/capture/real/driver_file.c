/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/real/driver_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/core/run/loader.h"

#define DRIVER "libcuda.so.1"
#define CACHE  "/etc/ld.so.cache"
/* dl-cache.h of glibc: the format since 2.2 */
#define CACHE_MAGIC "glibc-ld.so.cache1.1"

struct cache {
    char magic[20];
    uint32_t count, strings_bytes, unused[5];
};

struct cache_entry {
    int32_t flags;
    uint32_t name, path; /* offsets in the file */
    uint32_t os_version;
    uint64_t hardware;
};

static bool is_file(const char *path)
{
    return !access(path, R_OK);
}

/* Not ours, which a user may have put on LD_LIBRARY_PATH. */
static bool try_directory(const char *directory, size_t length, char *path)
{
    const char *ours = loader_directory();

    if (!length || length > DRIVER_FILE_BYTES - sizeof DRIVER - 1 ||
        (strlen(ours) == length && !strncmp(directory, ours, length)))
        return false;
    snprintf(path, DRIVER_FILE_BYTES, "%.*s/" DRIVER, (int)length, directory);
    return is_file(path);
}

static bool try_variable(char *path)
{
    const char *at = getenv("LD_LIBRARY_PATH");

    while (at && *at) {
        size_t length = strcspn(at, ":;");

        if (try_directory(at, length, path))
            return true;
        at += length + (at[length] != '\0');
    }
    return false;
}

/* The text at OFFSET of the BYTES at FILE, ended there; NULL: none is. */
static const char *text_at(const char *file, size_t bytes, uint32_t offset)
{
    return offset < bytes && memchr(file + offset, 0, bytes - offset)
               ? file + offset
               : NULL;
}

static bool cache_search(const char *file, size_t bytes, char *path)
{
    const struct cache *cache = (const struct cache *)file;
    const struct cache_entry *entries =
        (const struct cache_entry *)(file + sizeof *cache);

    if (bytes < sizeof *cache ||
        memcmp(cache->magic, CACHE_MAGIC, sizeof cache->magic) ||
        cache->count > (bytes - sizeof *cache) / sizeof *entries)
        return false;
    for (uint32_t i = 0; i < cache->count; i++) {
        const char *name = text_at(file, bytes, entries[i].name);
        const char *found = text_at(file, bytes, entries[i].path);

        if (!name || !found || strcmp(name, DRIVER) ||
            strlen(found) >= DRIVER_FILE_BYTES || !is_file(found))
            continue;
        strcpy(path, found);
        return true;
    }
    return false;
}

static bool try_cache(char *path)
{
    int fd = open(CACHE, O_RDONLY | O_CLOEXEC);
    struct stat st;
    bool found = false;

    if (fd < 0)
        return false;
    if (!fstat(fd, &st) && st.st_size > 0) {
        size_t bytes = (size_t)st.st_size;
        void *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);

        if (file != MAP_FAILED) {
            found = cache_search(file, bytes, path);
            munmap(file, bytes);
        }
    }
    close(fd);
    return found;
}

bool driver_file_find(char path[DRIVER_FILE_BYTES])
{
    static const char *const usual[] = {
        "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",                "/usr/lib",
        "/lib64",                    "/usr/local/nvidia/lib64",
        "/usr/lib/wsl/lib",          "/run/opengl-driver/lib"};

    if (try_variable(path) || try_cache(path))
        return true;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (try_directory(usual[i], strlen(usual[i]), path))
            return true;
    return false;
}
