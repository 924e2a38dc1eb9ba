/* SPDX-License-Identifier: Apache-2.0
 * The C library's calls that make, remove and rename entries of directories,
 * which scratch.h stands before. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/files/scratch.h"

/* --- removing ------------------------------------------------------------- */

static int remove_entry(int directory, const char *path, int flags)
{
    struct scratch_room room;
    const char *used = scratch_change(directory, path, SCRATCH_REMOVE, &room);

    if (!used)
        return -1;
    int rc = (int)syscall(SYS_unlinkat, directory, used, flags);
    if (!rc || !(flags & AT_REMOVEDIR) || used != path ||
        (errno != ENOTEMPTY && errno != EEXIST))
        return rc;
    int error = errno;
    used = scratch_rmdir(directory, path, &room);
    errno = error;
    return used ? (int)syscall(SYS_unlinkat, AT_FDCWD, used, flags) : rc;
}

CORE_API int unlink(const char *path)
{
    return remove_entry(AT_FDCWD, path, 0);
}

CORE_API int rmdir(const char *path)
{
    return remove_entry(AT_FDCWD, path, AT_REMOVEDIR);
}

CORE_API int unlinkat(int directory, const char *path, int flags)
{
    return remove_entry(directory, path, flags);
}

CORE_API int remove(const char *path)
{
    int saved = errno;

    if (!unlink(path))
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    errno = saved;
    return rmdir(path);
}

/* --- two names ------------------------------------------------------------ */

static int rename_pair(struct scratch_end from, struct scratch_end to,
                       unsigned flags)
{
    int rc = scratch_pair(flags & RENAME_EXCHANGE ? SCRATCH_EXCHANGE
                                                  : SCRATCH_RENAME,
                          &from, &to);

    if (rc)
        return rc < 0 ? -1 : 0;
    return (int)syscall(SYS_renameat2, from.directory, from.path, to.directory,
                        to.path, flags);
}

#define END(at, name)                                                          \
    (struct scratch_end)                                                       \
    {                                                                          \
        .directory = (at), .path = (name)                                      \
    }

CORE_API int rename(const char *from, const char *to)
{
    return rename_pair(END(AT_FDCWD, from), END(AT_FDCWD, to), 0);
}

CORE_API int renameat(int from_directory, const char *from, int to_directory,
                      const char *to)
{
    return rename_pair(END(from_directory, from), END(to_directory, to), 0);
}

CORE_API int renameat2(int from_directory, const char *from, int to_directory,
                       const char *to, unsigned flags)
{
    return rename_pair(END(from_directory, from), END(to_directory, to), flags);
}

static int link_pair(struct scratch_end from, struct scratch_end to, int flags)
{
    if (flags & (AT_SYMLINK_FOLLOW | AT_EMPTY_PATH)) { /* maybe of no name */
        const char *used =
            scratch_change(to.directory, to.path, SCRATCH_MAKE, &to.room);
        if (!used)
            return -1;
        to.path = used;
    } else {
        int rc = scratch_pair(SCRATCH_LINK, &from, &to);
        if (rc)
            return rc < 0 ? -1 : 0;
    }
    return (int)syscall(SYS_linkat, from.directory, from.path, to.directory,
                        to.path, flags);
}

CORE_API int link(const char *from, const char *to)
{
    return link_pair(END(AT_FDCWD, from), END(AT_FDCWD, to), 0);
}

CORE_API int linkat(int from_directory, const char *from, int to_directory,
                    const char *to, int flags)
{
    return link_pair(END(from_directory, from), END(to_directory, to), flags);
}

/* --- making --------------------------------------------------------------- */

CORE_API int symlinkat(const char *text, int directory, const char *path)
{
    struct scratch_room room;

    path = scratch_change(directory, path, SCRATCH_MAKE, &room);
    return path ? (int)syscall(SYS_symlinkat, text, directory, path) : -1;
}

CORE_API int symlink(const char *text, const char *path)
{
    return symlinkat(text, AT_FDCWD, path);
}

CORE_API int mkdirat(int directory, const char *path, mode_t mode)
{
    struct scratch_room room;
    const char *used = scratch_change(directory, path, SCRATCH_MAKE, &room);

    if (!used)
        return -1;
    int rc = (int)syscall(SYS_mkdirat, directory, used, mode);
    if (!rc && used == path)
        scratch_made(directory, path);
    return rc;
}

CORE_API int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

CORE_API int mknodat(int directory, const char *path, mode_t mode, dev_t dev)
{
    struct scratch_room room;

    path = scratch_change(directory, path, SCRATCH_MAKE, &room);
    return path ? (int)syscall(SYS_mknodat, directory, path, mode, dev) : -1;
}

CORE_API int mknod(const char *path, mode_t mode, dev_t dev)
{
    return mknodat(AT_FDCWD, path, mode, dev);
}

CORE_API int mkfifo(const char *path, mode_t mode)
{
    return mknodat(AT_FDCWD, path, (mode & 07777) | S_IFIFO, 0);
}
