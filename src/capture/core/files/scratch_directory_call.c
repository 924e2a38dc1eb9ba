/* SPDX-License-Identifier: Apache-2.0
 * The C library's calls about directories, links and temporary files, which
 * scratch.h stands before. */
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/base/core.h"
#include "capture/core/files/scratch.h"
#include "capture/core/run/loader.h"
#include "capture/core/run/process.h"

/* Of calls whose errors dlerror() does not tell, the C library's is looked up
 * when it is needed (run/loader.h). */

/* --- what is loaded and executed ----------------------------------------- */

static const char *stand_in(const char *path, char *room)
{
    return scratch_look(AT_FDCWD, path, true, (struct scratch_room *)room);
}

__attribute__((constructor)) static void stand_in_offer(void)
{
    loader_stand_in = stand_in;
}

/* --- directories ---------------------------------------------------------- */


CORE_API DIR *opendir(const char *path)
{
    struct scratch_room room;

    path = scratch_look(AT_FDCWD, path, true, &room);
    return path ? REAL(opendir)(path) : NULL;
}

/* A link may stand in for something else: lstat() says for what. */
static unsigned char type_said(unsigned char type)
{
    const struct session *s = memsim_session();

    return type == DT_LNK && s && atomic_load(&s->root_count) ? DT_UNKNOWN
                                                              : type;
}

CORE_API struct dirent *readdir(DIR *d)
{
    struct dirent *e = REAL(readdir)(d);

    if (e)
        e->d_type = type_said(e->d_type);
    return e;
}

CORE_API struct dirent64 *readdir64(DIR *d)
{
    struct dirent64 *e = REAL(readdir64)(d);

    if (e)
        e->d_type = type_said(e->d_type);
    return e;
}

CORE_API int chdir(const char *path)
{
    struct scratch_room room;

    path = scratch_look(AT_FDCWD, path, true, &room);
    return path ? (int)syscall(SYS_chdir, path) : -1;
}

/* Into BUFFER, or into one of the C library's heap, which the program frees. */
CORE_API char *getcwd(char *buffer, size_t size)
{
    size_t room = size ? size : PATH_MAX;
    char *path = buffer ? buffer : malloc(room);

    if (!path)
        return NULL;
    if (buffer && !size) {
        errno = EINVAL;
        return NULL;
    }
    long n = syscall(SYS_getcwd, path, room);
    if (n > 0 && *path == '/') {
        scratch_unmap(path);
        return path;
    }
    if (n > 0)
        errno = ENOENT; /* outside this process's root */
    if (!buffer)
        free(path);
    return NULL;
}

/* --- links ---------------------------------------------------------------- */

CORE_API ssize_t readlinkat(int directory, const char *path, char *text,
                            size_t size)
{
    struct scratch_room room;

    path = scratch_look(directory, path, false, &room);
    return path ? syscall(SYS_readlinkat, directory, path, text, size) : -1;
}

CORE_API ssize_t readlink(const char *path, char *text, size_t size)
{
    return readlinkat(AT_FDCWD, path, text, size);
}


CORE_API char *realpath(const char *path, char *resolved)
{
    struct scratch_room room;

    path = scratch_look(AT_FDCWD, path, true, &room);
    if (!path && errno != EINVAL)
        return NULL;
    char *found = REAL(realpath)(path, resolved);
    if (found)
        scratch_unmap(found);
    return found;
}

/* --- file systems --------------------------------------------------------- */


CORE_API int statfs(const char *path, struct statfs *st)
{
    struct scratch_room room;

    path = scratch_look(AT_FDCWD, path, true, &room);
    return path ? (int)syscall(SYS_statfs, path, st) : -1;
}

CORE_API int statfs64(const char *path, struct statfs64 *st)
{
    return statfs(path, (struct statfs *)st);
}

CORE_API int statvfs(const char *path, struct statvfs *st)
{
    struct scratch_room room;

    path = scratch_look(AT_FDCWD, path, true, &room);
    return path ? REAL(statvfs)(path, st) : -1;
}

CORE_API int statvfs64(const char *path, struct statvfs64 *st)
{
    return statvfs(path, (struct statvfs *)st);
}

/* --- temporary files ------------------------------------------------------ */


/* The name that was chosen in USED goes to TEMPLATE. */
static void name_chosen(char *template, const char *used)
{
    size_t length = strlen(strrchr(used, '/'));
    char *slash = strrchr(template, '/');

    memcpy(slash ? slash : template, strrchr(used, '/') + !slash,
           length + 1 - !slash);
}

CORE_API int mkostemps(char *template, int suffix, int flags)
{
    struct scratch_room room;
    const char *used = scratch_change(AT_FDCWD, template, SCRATCH_MAKE, &room);

    if (!used)
        return -1;
    if (used == template)
        return REAL(mkostemps)(template, suffix, flags);
    int fd = REAL(mkostemps)(room.path, suffix, flags);
    if (fd >= 0)
        name_chosen(template, room.path);
    return fd;
}

CORE_API int mkostemps64(char *template, int suffix, int flags)
{
    return mkostemps(template, suffix, flags);
}

CORE_API int mkstemps(char *template, int suffix)
{
    return mkostemps(template, suffix, 0);
}

CORE_API int mkstemps64(char *template, int suffix)
{
    return mkostemps(template, suffix, 0);
}

CORE_API int mkostemp(char *template, int flags)
{
    return mkostemps(template, 0, flags);
}

CORE_API int mkostemp64(char *template, int flags)
{
    return mkostemps(template, 0, flags);
}

CORE_API int mkstemp(char *template)
{
    return mkostemps(template, 0, 0);
}

CORE_API int mkstemp64(char *template)
{
    return mkostemps(template, 0, 0);
}

CORE_API char *mkdtemp(char *template)
{
    struct scratch_room room;
    const char *used = scratch_change(AT_FDCWD, template, SCRATCH_MAKE, &room);

    if (!used)
        return NULL;
    if (used == template) {
        char *made = REAL(mkdtemp)(template);
        if (made)
            scratch_made(AT_FDCWD, made);
        return made;
    }
    if (!REAL(mkdtemp)(room.path))
        return NULL;
    name_chosen(template, room.path);
    return template;
}
