/* SPDX-License-Identifier: Apache-2.0
 * The C library's calls that open and inspect files, which scratch.h stands
 * before. A program reaches them by
 * the name that its compiler and its C library knew: with and without 64, with
 * checks of _FORTIFY_SOURCE, and __xstat for what stat is since glibc 2.33. */
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/files/scratch.h"
#include "capture/core/run/clock_files.h"

/* Those of the C library. They are looked up when the program starts: later,
 * dlsym() would spoil what dlerror() is about to say. */
#define REALS(X)                                                               \
    X(open)                                                                    \
    X(open64) X(openat) X(openat64) X(__open_2) X(__open64_2) X(__openat_2)    \
        X(__openat64_2) X(fopen) X(fopen64) X(freopen) X(freopen64) X(access)  \
            X(faccessat)

enum real {
#define X(name) REAL_##name,
    REALS(X)
#undef X
        REAL_COUNT,
};

static void *reals[REAL_COUNT];

static void *real_find(enum real which)
{
    static const char *const names[] = {
#define X(name) #name,
        REALS(X)
#undef X
    };

    if (!reals[which])
        reals[which] = dlsym(RTLD_NEXT, names[which]);
    return reals[which];
}

__attribute__((constructor)) static void reals_find(void)
{
    for (int i = 0; i < REAL_COUNT; i++)
        real_find((enum real)i);
}

#define REAL(name, type) ((__typeof__(type) *)real_find(REAL_##name))

#define NEEDS_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)

/* The mode that follows FLAGS, where there is one. */
#define MODE(flags, mode)                                                      \
    do {                                                                       \
        va_list args_;                                                         \
                                                                               \
        va_start(args_, flags);                                                \
        (mode) = NEEDS_MODE(flags) ? va_arg(args_, mode_t) : 0;                \
        va_end(args_);                                                         \
    } while (0)

/* --- open ----------------------------------------------------------------- */

typedef int open_call(const char *, int, ...);
typedef int openat_call(int, const char *, int, ...);
typedef int open_2_call(const char *, int);
typedef int openat_2_call(int, const char *, int);

#define OPEN(name)                                                             \
    CORE_API int name(const char *path, int flags, ...)                        \
    {                                                                          \
        struct scratch_room room;                                              \
        mode_t mode;                                                           \
                                                                               \
        MODE(flags, mode);                                                     \
        path = scratch_open(AT_FDCWD, path, flags, &room);                     \
        return path ? REAL(name, open_call)(path, flags, mode) : -1;           \
    }

#define OPENAT(name)                                                           \
    CORE_API int name(int directory, const char *path, int flags, ...)         \
    {                                                                          \
        struct scratch_room room;                                              \
        mode_t mode;                                                           \
                                                                               \
        MODE(flags, mode);                                                     \
        path = scratch_open(directory, path, flags, &room);                    \
        return path ? REAL(name, openat_call)(directory, path, flags, mode)    \
                    : -1;                                                      \
    }

#define OPEN_2(name)                                                           \
    CORE_API int name(const char *path, int flags);                            \
    CORE_API int name(const char *path, int flags)                             \
    {                                                                          \
        struct scratch_room room;                                              \
                                                                               \
        path = scratch_open(AT_FDCWD, path, flags, &room);                     \
        return path ? REAL(name, open_2_call)(path, flags) : -1;               \
    }

#define OPENAT_2(name)                                                         \
    CORE_API int name(int directory, const char *path, int flags);             \
    CORE_API int name(int directory, const char *path, int flags)              \
    {                                                                          \
        struct scratch_room room;                                              \
                                                                               \
        path = scratch_open(directory, path, flags, &room);                    \
        return path ? REAL(name, openat_2_call)(directory, path, flags) : -1;  \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
OPEN_2(__open_2)
OPEN_2(__open64_2)
OPENAT_2(__openat_2)
OPENAT_2(__openat64_2)

CORE_API int creat(const char *path, mode_t mode)
{
    return open(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

CORE_API int creat64(const char *path, mode_t mode)
{
    return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

/* --- fopen ---------------------------------------------------------------- */

typedef FILE *fopen_call(const char *, const char *);
typedef FILE *freopen_call(const char *, const char *, FILE *);

/* What fopen() makes of MODE. */
static int flags_of(const char *mode)
{
    bool both = strchr(mode, '+');
    int flags = *mode == 'w'   ? O_CREAT | O_TRUNC
                : *mode == 'a' ? O_CREAT | O_APPEND
                               : 0;

    if (strchr(mode, 'x'))
        flags |= O_EXCL;
    if (*mode == 'r' && !both)
        return O_RDONLY;
    return flags | (both ? O_RDWR : O_WRONLY);
}

#define FOPEN(name)                                                            \
    CORE_API FILE *name(const char *path, const char *mode)                    \
    {                                                                          \
        struct scratch_room room;                                              \
                                                                               \
        path = scratch_open(AT_FDCWD, path, flags_of(mode), &room);            \
        return path ? REAL(name, fopen_call)(path, mode) : NULL;               \
    }

#define FREOPEN(name)                                                          \
    CORE_API FILE *name(const char *path, const char *mode, FILE *file)        \
    {                                                                          \
        struct scratch_room room;                                              \
                                                                               \
        if (path)                                                              \
            path = scratch_open(AT_FDCWD, path, flags_of(mode), &room);        \
        return REAL(name, freopen_call)(path, mode, file);                     \
    }

FOPEN(fopen)
FOPEN(fopen64)
FREOPEN(freopen)
FREOPEN(freopen64)

/* --- stat and access ------------------------------------------------------ */

/* By system call: before glibc 2.33 there is no function to pass on to. */
static int stat_at(int directory, const char *path, struct stat *st, int flags)
{
    struct scratch_room room;

    path = scratch_look(directory, path, !(flags & AT_SYMLINK_NOFOLLOW), &room);
    if (!path)
        return -1;
    int rc = (int)syscall(SYS_newfstatat, directory, path, st, flags);
    if (!rc)
        clock_files_stat(st);
    return rc;
}

#define XSTAT(name, flags)                                                     \
    CORE_API int name(int version, const char *path, struct stat *st);         \
    CORE_API int name(int version, const char *path, struct stat *st)          \
    {                                                                          \
        (void)version;                                                         \
        return stat_at(AT_FDCWD, path, st, flags);                             \
    }

#define FXSTATAT(name)                                                         \
    CORE_API int name(int version, int directory, const char *path,            \
                      struct stat *st, int flags);                             \
    CORE_API int name(int version, int directory, const char *path,            \
                      struct stat *st, int flags)                              \
    {                                                                          \
        (void)version;                                                         \
        return stat_at(directory, path, st, flags);                            \
    }

XSTAT(__xstat, 0)
XSTAT(__xstat64, 0)
XSTAT(__lxstat, AT_SYMLINK_NOFOLLOW)
XSTAT(__lxstat64, AT_SYMLINK_NOFOLLOW)
FXSTATAT(__fxstatat)
FXSTATAT(__fxstatat64)

CORE_API int stat(const char *path, struct stat *st)
{
    return stat_at(AT_FDCWD, path, st, 0);
}

CORE_API int lstat(const char *path, struct stat *st)
{
    return stat_at(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

CORE_API int fstatat(int directory, const char *path, struct stat *st,
                     int flags)
{
    return stat_at(directory, path, st, flags);
}

CORE_API int stat64(const char *path, struct stat64 *st)
{
    return stat_at(AT_FDCWD, path, (struct stat *)st, 0);
}

CORE_API int lstat64(const char *path, struct stat64 *st)
{
    return stat_at(AT_FDCWD, path, (struct stat *)st, AT_SYMLINK_NOFOLLOW);
}

CORE_API int fstatat64(int directory, const char *path, struct stat64 *st,
                       int flags)
{
    return stat_at(directory, path, (struct stat *)st, flags);
}

CORE_API int statx(int directory, const char *path, int flags, unsigned mask,
                   struct statx *st)
{
    struct scratch_room room;

    path = scratch_look(directory, path, !(flags & AT_SYMLINK_NOFOLLOW), &room);
    int rc = path ? (int)syscall(SYS_statx, directory, path, flags, mask, st)
                  : -1;
    if (!rc)
        clock_files_statx(st);
    return rc;
}

typedef int access_call(const char *, int);
typedef int faccessat_call(int, const char *, int, int);

CORE_API int access(const char *path, int mode)
{
    struct scratch_room room;

    path = scratch_look(AT_FDCWD, path, true, &room);
    return path ? REAL(access, access_call)(path, mode) : -1;
}

CORE_API int faccessat(int directory, const char *path, int mode, int flags)
{
    struct scratch_room room;

    path = scratch_look(directory, path, !(flags & AT_SYMLINK_NOFOLLOW), &room);
    return path ? REAL(faccessat, faccessat_call)(directory, path, mode, flags)
                : -1;
}
