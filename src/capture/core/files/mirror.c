/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/files/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/files/entries.h"
#include "capture/core/files/scratch_file.h"
#include "capture/core/run/process.h"

#define NEW ".memsim-new" /* a directory or a file until it is whole */

/* --- one at a time -------------------------------------------------------- */

/* A descriptor of its own for each, so that it also keeps out threads. */
static int tree_lock(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int fd = process_file(SESSION_PLACES);

    while (fd >= 0 && fcntl(fd, F_OFD_SETLKW, &lock) && errno == EINTR)
        ;
    return fd;
}

/* Explicitly: a child that was forked meanwhile has the descriptor, too. */
static void tree_unlock(int fd)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};
    int saved = errno;

    if (fd >= 0) {
        fcntl(fd, F_OFD_SETLK, &lock);
        close(fd);
    }
    errno = saved;
}

/* --- making entries ------------------------------------------------------- */

static bool path_join(char *out, const char *directory, const char *name)
{
    size_t length = strlen(directory);

    memcpy(out, directory, length + 1);
    return place_join(out, name, strlen(name));
}

/* What stands in COPY for SOURCE: a link as it is, else one to it. */
static int entry_make(const char *source, const char *copy)
{
    char text[PATH_MAX + 1];

    if (!place_link(source, text))
        snprintf(text, sizeof text, "/%s", source);
    return (int)syscall(SYS_symlinkat, text, AT_FDCWD, copy);
}

/* What is filled: PATH, as the program sees it, from SOURCE, at COPY. */
struct filling {
    char path[PATH_MAX], source[PATH_MAX], copy[PATH_MAX];
};

static int fill_mirror(const struct filling *f);

static bool filling_enter(const struct filling *f, const char *name,
                          struct filling *inner)
{
    return path_join(inner->path, f->path, name) &&
           path_join(inner->source, f->source, name) &&
           path_join(inner->copy, f->copy, name);
}

/* The entry NAME: a root inside has its own copy, or has been removed; a
 * directory that holds one is there, but not filled. */
static int fill_entry(const struct filling *f, const char *name)
{
    struct filling inner;
    struct stat st;

    if (!filling_enter(f, name, &inner))
        return errno = ENAMETOOLONG, -1;
    if (place_is_root(inner.path))
        return 0;
    if (place_stat(inner.copy, &st))
        return S_ISDIR(st.st_mode) ? fill_mirror(&inner) : 0;
    return entry_make(inner.source, inner.copy);
}

static int fill_mirror(const struct filling *f)
{
    struct entries entries;
    const struct entry *e;
    struct stat st;
    int rc = 0;

    if (!place_stat(f->source, &st))
        return -1;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, f->source,
                          O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (syscall(SYS_mkdirat, AT_FDCWD, f->copy, 0700) && errno != EEXIST)
        rc = -1;
    entries_begin(&entries, fd, false);
    while (!rc && (e = entries_next(&entries)))
        rc = fill_entry(f, e->name);
    close(fd);
    if (!rc)
        syscall(SYS_fchmodat, AT_FDCWD, f->copy, (st.st_mode & 07777) | 0700);
    return rc;
}

/* --- roots ---------------------------------------------------------------- */

static int root_make(const struct session *s, const char *path)
{
    struct filling f;
    struct stat st;

    if (!place_copy(s, path, f.copy))
        return errno = ENAMETOOLONG, -1;
    if (scratch_file_parents(f.copy))
        return -1;
    if (!place_stat(path, &st))
        return 0;
    if (!S_ISDIR(st.st_mode))
        return entry_make(path, f.copy);
    memcpy(f.path, path, strlen(path) + 1);
    memcpy(f.source, path, strlen(path) + 1);
    return fill_mirror(&f);
}

int mirror_root(const struct session *s, const char *path)
{
    struct session *shared = memsim_session();
    int lock = tree_lock(), rc = 0;

    if (!place_is_root(path)) {
        rc = root_make(s, path);
        if (!rc) {
            place_add(PLACE_ROOT, place_hash_path(path));
            atomic_fetch_add(&shared->root_count, 1);
            place_log(CHANGE_ROOT, path, NULL);
        }
    }
    tree_unlock(lock);
    return rc;
}

/* --- what stands in gives way --------------------------------------------- */

/* Puts FRESH, which is whole, in the place of COPY. */
static int give_way(const char *fresh, const char *copy)
{
    if (!syscall(SYS_renameat2, AT_FDCWD, fresh, AT_FDCWD, copy,
                 RENAME_EXCHANGE))
        return (int)syscall(SYS_unlinkat, AT_FDCWD, fresh, 0);
    syscall(SYS_unlinkat, AT_FDCWD, copy, 0);
    return (int)syscall(SYS_renameat2, AT_FDCWD, fresh, AT_FDCWD, copy, 0);
}

int mirror_directory(const struct session *s, const char *path)
{
    int lock = tree_lock(), rc = -1;
    struct filling f;
    char copy[PATH_MAX], text[PATH_MAX];

    memcpy(f.path, path, strlen(path) + 1);
    if (place_copy(s, path, copy)) {
        snprintf(f.copy, sizeof f.copy, "%.*s" NEW, PATH_MAX - 16, copy);
        rc = 0;
        if (place_link(copy, text) && text[0] == '/' && text[1] == '/') {
            memcpy(f.source, text + 1, strlen(text));
            rc = fill_mirror(&f);
            rc = rc ? rc : give_way(f.copy, copy);
        }
    }
    tree_unlock(lock);
    return rc;
}

int mirror_parents(const struct session *s, const char *path)
{
    struct stat st;
    char part[PATH_MAX], copy[PATH_MAX];
    bool inside = false;

    for (const char *slash = strchr(path + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        inside = inside || place_is_root(part);
        if (!inside)
            continue;
        if (!place_copy(s, part, copy))
            return errno = ENAMETOOLONG, -1;
        if (place_stat(copy, &st) && S_ISLNK(st.st_mode) &&
            mirror_directory(s, part))
            return -1;
    }
    return 0;
}

int mirror_copy_whole(const char *source, const struct stat *st,
                      const char *target)
{
    char part[PATH_MAX];
    struct timespec times[] = {st->st_atim, st->st_mtim};

    snprintf(part, sizeof part, "%.*s" NEW, PATH_MAX - 16, target);
    if (scratch_file_make(part, st->st_mode & 0777) ||
        scratch_file_copy(source, part))
        return -1;
    syscall(SYS_utimensat, AT_FDCWD, part, times, 0);
    return (int)syscall(SYS_renameat2, AT_FDCWD, part, AT_FDCWD, target, 0);
}

int mirror_file(const struct session *s, const char *path, const char *users,
                bool kept)
{
    int lock = tree_lock(), rc = -1;
    char copy[PATH_MAX], fresh[PATH_MAX];
    struct stat st;

    if (!place_copy(s, path, copy) ||
        syscall(SYS_newfstatat, AT_FDCWD, users, &st, 0)) {
        rc = -1;
    } else if (kept) {
        rc = mirror_copy_whole(users, &st, copy);
    } else {
        snprintf(fresh, sizeof fresh, "%.*s" NEW, PATH_MAX - 16, copy);
        rc = scratch_file_make(fresh, st.st_mode & 0777);
        rc = rc ? rc
                : (int)syscall(SYS_renameat2, AT_FDCWD, fresh, AT_FDCWD, copy,
                               0);
    }
    tree_unlock(lock);
    return rc;
}
