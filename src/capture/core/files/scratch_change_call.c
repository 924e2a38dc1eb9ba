/* SPDX-License-Identifier: Apache-2.0
 * The C library's calls that change a file's length, mode, owner, times or
 * attributes, which scratch.h stands before. */
#undef _FORTIFY_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "capture/core/base/core.h"
#include "capture/core/files/scratch.h"

static enum scratch_use use_of(int flags)
{
    return flags & AT_SYMLINK_NOFOLLOW ? SCRATCH_ITSELF : SCRATCH_CONTENT;
}

/* The path to change in place of PATH, in ROOM. */
#define CHANGE(directory, path, how)                                           \
    struct scratch_room room;                                                  \
                                                                               \
    path = scratch_change(directory, path, how, &room);                        \
    if (!path)                                                                 \
    return -1

/* The path to change in place of the file FD; NULL: FD itself. */
#define CHANGE_FD(fd, path)                                                    \
    struct scratch_room room;                                                  \
    const char *path = scratch_change_fd(fd, &room);                           \
                                                                               \
    if (!path && errno)                                                        \
    return -1

/* --- length and mode ------------------------------------------------------ */

CORE_API int truncate(const char *path, off_t length)
{
    CHANGE(AT_FDCWD, path, SCRATCH_CONTENT);
    return (int)syscall(SYS_truncate, path, length);
}

CORE_API int truncate64(const char *path, off64_t length)
{
    return truncate(path, length);
}

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* since Linux 6.6 */
#endif

CORE_API int fchmodat(int directory, const char *path, mode_t mode, int flags)
{
    CHANGE(directory, path, use_of(flags));
    if (!flags)
        return (int)syscall(SYS_fchmodat, directory, path, mode);
    int rc = (int)syscall(SYS_fchmodat2, directory, path, mode, flags);
    if (rc && errno == ENOSYS)
        errno = EOPNOTSUPP;
    return rc;
}

CORE_API int chmod(const char *path, mode_t mode)
{
    return fchmodat(AT_FDCWD, path, mode, 0);
}

CORE_API int lchmod(const char *path, mode_t mode)
{
    return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

CORE_API int fchmod(int fd, mode_t mode)
{
    CHANGE_FD(fd, path);
    return (int)(path ? syscall(SYS_fchmodat, AT_FDCWD, path, mode)
                      : syscall(SYS_fchmod, fd, mode));
}

/* --- owner ---------------------------------------------------------------- */

CORE_API int fchownat(int directory, const char *path, uid_t owner, gid_t group,
                      int flags)
{
    CHANGE(directory, path, use_of(flags));
    return (int)syscall(SYS_fchownat, directory, path, owner, group, flags);
}

CORE_API int chown(const char *path, uid_t owner, gid_t group)
{
    return fchownat(AT_FDCWD, path, owner, group, 0);
}

CORE_API int lchown(const char *path, uid_t owner, gid_t group)
{
    return fchownat(AT_FDCWD, path, owner, group, AT_SYMLINK_NOFOLLOW);
}

CORE_API int fchown(int fd, uid_t owner, gid_t group)
{
    CHANGE_FD(fd, path);
    return (int)(path ? syscall(SYS_fchownat, AT_FDCWD, path, owner, group, 0)
                      : syscall(SYS_fchown, fd, owner, group));
}

/* --- times ---------------------------------------------------------------- */

CORE_API int futimens(int fd, const struct timespec times[2])
{
    CHANGE_FD(fd, path);
    return (int)(path ? syscall(SYS_utimensat, AT_FDCWD, path, times, 0)
                      : syscall(SYS_utimensat, fd, NULL, times, 0));
}

CORE_API int utimensat(int directory, const char *path,
                       const struct timespec times[2], int flags)
{
    CHANGE(directory, path, use_of(flags));
    return (int)syscall(SYS_utimensat, directory, path, times, flags);
}

static const struct timespec *convert_times(const struct timeval from[2],
                                            struct timespec to[2])
{
    for (int i = 0; from && i < 2; i++)
        to[i] = (struct timespec){from[i].tv_sec, from[i].tv_usec * 1000};
    return from ? to : NULL;
}

CORE_API int utimes(const char *path, const struct timeval times[2])
{
    struct timespec both[2];

    return utimensat(AT_FDCWD, path, convert_times(times, both), 0);
}

CORE_API int lutimes(const char *path, const struct timeval times[2])
{
    struct timespec both[2];

    return utimensat(AT_FDCWD, path, convert_times(times, both),
                     AT_SYMLINK_NOFOLLOW);
}

CORE_API int futimes(int fd, const struct timeval times[2])
{
    struct timespec both[2];

    return futimens(fd, convert_times(times, both));
}

CORE_API int futimesat(int directory, const char *path,
                       const struct timeval times[2])
{
    struct timespec both[2];

    return path ? utimensat(directory, path, convert_times(times, both), 0)
                : futimens(directory, convert_times(times, both));
}

CORE_API int utime(const char *path, const struct utimbuf *times)
{
    struct timespec both[2];

    if (times) {
        both[0] = (struct timespec){.tv_sec = times->actime};
        both[1] = (struct timespec){.tv_sec = times->modtime};
    }
    return utimensat(AT_FDCWD, path, times ? both : NULL, 0);
}

/* --- extended attributes -------------------------------------------------- */

CORE_API int setxattr(const char *path, const char *name, const void *value,
                      size_t size, int flags)
{
    CHANGE(AT_FDCWD, path, SCRATCH_CONTENT);
    return (int)syscall(SYS_setxattr, path, name, value, size, flags);
}

CORE_API int lsetxattr(const char *path, const char *name, const void *value,
                       size_t size, int flags)
{
    CHANGE(AT_FDCWD, path, SCRATCH_ITSELF);
    return (int)syscall(SYS_lsetxattr, path, name, value, size, flags);
}

CORE_API int fsetxattr(int fd, const char *name, const void *value, size_t size,
                       int flags)
{
    CHANGE_FD(fd, path);
    return (int)(path ? syscall(SYS_setxattr, path, name, value, size, flags)
                      : syscall(SYS_fsetxattr, fd, name, value, size, flags));
}

CORE_API int removexattr(const char *path, const char *name)
{
    CHANGE(AT_FDCWD, path, SCRATCH_CONTENT);
    return (int)syscall(SYS_removexattr, path, name);
}

CORE_API int lremovexattr(const char *path, const char *name)
{
    CHANGE(AT_FDCWD, path, SCRATCH_ITSELF);
    return (int)syscall(SYS_lremovexattr, path, name);
}

CORE_API int fremovexattr(int fd, const char *name)
{
    CHANGE_FD(fd, path);
    return (int)(path ? syscall(SYS_removexattr, path, name)
                      : syscall(SYS_fremovexattr, fd, name));
}

/* --- reading them --------------------------------------------------------- */

#define LOOK(path, follow)                                                     \
    struct scratch_room room;                                                  \
                                                                               \
    path = scratch_look(AT_FDCWD, path, follow, &room);                        \
    if (!path)                                                                 \
    return -1

CORE_API ssize_t getxattr(const char *path, const char *name, void *value,
                          size_t size)
{
    LOOK(path, true);
    return syscall(SYS_getxattr, path, name, value, size);
}

CORE_API ssize_t lgetxattr(const char *path, const char *name, void *value,
                           size_t size)
{
    LOOK(path, false);
    return syscall(SYS_lgetxattr, path, name, value, size);
}

CORE_API ssize_t listxattr(const char *path, char *list, size_t size)
{
    LOOK(path, true);
    return syscall(SYS_listxattr, path, list, size);
}

CORE_API ssize_t llistxattr(const char *path, char *list, size_t size)
{
    LOOK(path, false);
    return syscall(SYS_llistxattr, path, list, size);
}
