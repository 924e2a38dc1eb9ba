/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/files/scratch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/run/process.h"

#define PIECE_BYTES (16u << 10) /* on the stack of any thread */

bool scratch_file_exists(const char *path)
{
    struct stat st;

    return !syscall(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);
}

static int open_file(const char *path, int flags, mode_t mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

int scratch_file_parents(const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (syscall(SYS_mkdirat, AT_FDCWD, part, 0700) && errno != EEXIST)
            return -1;
    }
    return 0;
}

int scratch_file_make(const char *path, mode_t mode)
{
    int fd = open_file(path, O_WRONLY | O_CREAT, mode | 0600);

    if (fd < 0 && errno == ENOENT && !scratch_file_parents(path))
        fd = open_file(path, O_WRONLY | O_CREAT, mode | 0600);
    return fd < 0 ? -1 : close(fd);
}

static int write_all(int fd, const char *bytes, size_t count)
{
    while (count) {
        ssize_t n = write(fd, bytes, count);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        bytes += n;
        count -= (size_t)n;
    }
    return 0;
}

static int copy_bytes(int from, int to)
{
    char piece[PIECE_BYTES];
    ssize_t n;

    while ((n = syscall(SYS_copy_file_range, from, NULL, to, NULL,
                        (size_t)1 << 30, 0)) > 0)
        ;
    while ((n = read(from, piece, sizeof piece)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 || write_all(to, piece, (size_t)n))
            return -1;
    }
    return 0;
}

int scratch_file_copy(const char *from, const char *to)
{
    int source = open_file(from, O_RDONLY, 0);
    int target = source < 0 ? -1 : open_file(to, O_WRONLY | O_TRUNC, 0);
    int rc = target < 0 ? -1 : copy_bytes(source, target);
    int error = errno;

    if (target >= 0 && close(target))
        rc = -1;
    if (source >= 0)
        close(source);
    errno = rc ? error : errno;
    return rc;
}

/* The end of PATH tells more than its beginning. */
static void path_keep(char *to, const char *path)
{
    size_t length = strlen(path), most = SESSION_PATH_BYTES - 1;

    if (length > most)
        path += length - most;
    snprintf(to, SESSION_PATH_BYTES, "%s", path);
}

static struct session_file *file_find(struct session *s, const char *kept)
{
    for (uint32_t i = 0; i < SESSION_FILES && i < s->file_count; i++)
        if (atomic_load(&s->files[i].ready) && !strcmp(s->files[i].path, kept))
            return &s->files[i];
    return NULL;
}

void scratch_file_note(const char *path, enum session_file_kind kind)
{
    struct session *s = memsim_session();
    char kept[SESSION_PATH_BYTES];

    path_keep(kept, path);
    struct session_file *file = file_find(s, kept);
    if (!file) {
        uint32_t i = atomic_fetch_add(&s->file_count, 1);

        if (i >= SESSION_FILES)
            return;
        file = &s->files[i];
        memcpy(file->path, kept, sizeof file->path);
    }
    if (atomic_load(&file->kind) != SESSION_FILE_KEPT)
        atomic_store(&file->kind, kind);
    atomic_store(&file->ready, 1);
}
