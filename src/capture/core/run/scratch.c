/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/run/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/run/process.h"
#include "capture/core/run/scratch_file.h"

#define GONE ".memsim-gone"

/* Where a path leads. */
struct place {
    char path[PATH_MAX]; /* absolute, of its directory without links */
    char copy[PATH_MAX]; /* in the run's directory */
    struct stat st;
    bool exists; /* the file itself, not the copy */
};

static bool ends_with(const char *name, size_t length, const char *end)
{
    size_t n = strlen(end);

    return length > n && !memcmp(name + length - n, end, n);
}

static bool has_end(const char *path, const char *const *ends)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);

    if (!memchr(name, '.', length))
        return false;
    for (; *ends; ends++)
        if (ends_with(name, length, *ends))
            return true;
    return !strcmp(name, ".metadata"); /* of a distributed checkpoint */
}

static bool is_checkpoint_name(const char *path)
{
    static const char *const ends[] = {".pt",     ".pth",     ".bin",
                                       ".ckpt",   ".pth.tar", ".safetensors",
                                       ".distcp", NULL};

    return has_end(path, ends);
}

static bool is_data_name(const char *path)
{
    static const char *const ends[] = {".npy", ".npz",  ".pkl",  ".pickle",
                                       ".h5",  ".onnx", ".gguf", NULL};

    return has_end(path, ends) || is_checkpoint_name(path);
}

/* The session where checkpoints are kept: a GPU has been used in it. */
static const struct session *scratch_session(void)
{
    const struct session *s = memsim_session();

    return s && !s->write_through && atomic_load(&s->process_count) ? s : NULL;
}

static bool fd_path(int fd, char *path, size_t size)
{
    char link[32];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, size - 1);
    path[n > 0 ? n : 0] = '\0';
    return n > 0 && path[0] == '/';
}

static int open_path(int directory, const char *path, int flags)
{
    return (int)syscall(SYS_openat, directory, path,
                        O_PATH | O_CLOEXEC | flags);
}

/* The place of a name in a directory, by the directory. */
static bool find_by_parent(int directory, const char *path, struct place *p)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX] = ".";

    if (slash)
        snprintf(parent, sizeof parent, "%.*s",
                 slash == path ? 1 : (int)(slash - path), path);
    int fd = open_path(directory, parent, O_DIRECTORY);
    if (fd < 0)
        return false;
    bool found = fd_path(fd, p->path, sizeof p->path);
    close(fd);
    size_t length = strlen(p->path);
    const char *name = slash ? slash + 1 : path;
    if (!found || length + strlen(name) + 2 > sizeof p->path)
        return false;
    snprintf(p->path + length, sizeof p->path - length, "%s%s",
             length > 1 ? "/" : "", name);
    return true;
}

/* Finds where PATH leads; false: nowhere that is of interest. */
static bool find(const struct session *s, int directory, const char *path,
                 bool follow, struct place *p)
{
    size_t run = strlen(s->directory);
    int fd = open_path(directory, path, follow ? 0 : O_NOFOLLOW);

    p->exists = fd >= 0 && !fstat(fd, &p->st);
    bool found = fd >= 0 && follow ? fd_path(fd, p->path, sizeof p->path)
                                   : find_by_parent(directory, path, p);
    if (fd >= 0)
        close(fd);
    if (!found || (!strncmp(p->path, s->directory, run) && p->path[run] == '/'))
        return false;
    int n = snprintf(p->copy, sizeof p->copy, "%s/" SESSION_SCRATCH "%s",
                     s->directory, p->path);
    return n < (int)(sizeof p->copy - sizeof GONE);
}

static bool has_copy(const struct place *p)
{
    return scratch_file_exists(p->copy);
}

static char *gone_marker(const struct place *p, struct scratch_room *room)
{
    snprintf(room->path, sizeof room->path, "%.*s" GONE,
             (int)(sizeof room->path - sizeof GONE), p->copy);
    return room->path;
}

static bool is_gone(const struct place *p)
{
    struct scratch_room marker;

    return scratch_file_exists(gone_marker(p, &marker));
}

/* There before the run, as far as file systems tell: nothing of the inode has
 * changed since. */
static bool is_users(const struct session *s, const struct place *p)
{
    uint64_t changed_ns = (uint64_t)p->st.st_ctim.tv_sec * 1000000000 +
                          (uint64_t)p->st.st_ctim.tv_nsec;

    return p->exists && S_ISREG(p->st.st_mode) && changed_ns < s->start_unix_ns;
}

static int mark_gone(const struct place *p)
{
    struct scratch_room marker;

    return scratch_file_make(gone_marker(p, &marker), 0600);
}

static void mark_back(const struct place *p)
{
    struct scratch_room marker;

    unlink(gone_marker(p, &marker));
}

static const char *use(const char *path, struct scratch_room *room)
{
    memcpy(room->path, path, strlen(path) + 1);
    return room->path;
}

const char *scratch_look(int directory, const char *path, bool follow,
                         struct scratch_room *room)
{
    const struct session *s;
    struct place p;
    int saved = errno;

    if (!path || !is_checkpoint_name(path) || !(s = scratch_session()) ||
        !find(s, directory, path, follow, &p))
        return errno = saved, path;
    bool copied = has_copy(&p), gone = !copied && is_gone(&p);
    errno = gone ? ENOENT : saved;
    return copied ? use(p.copy, room) : gone ? NULL : path;
}

/* The copy of P, to be written from now on; FLAGS as of open(). */
static const char *open_copy(struct place *p, int flags,
                             struct scratch_room *room)
{
    bool keeps = !(flags & O_TRUNC);

    if (scratch_file_make(p->copy, p->st.st_mode & 0777) ||
        (keeps && scratch_file_copy(p->path, p->copy)))
        return NULL;
    scratch_file_note(p->path, SESSION_FILE_KEPT);
    return use(p->copy, room);
}

/* PATH is about to be written. */
static const char *open_to_write(const struct session *s, int directory,
                                 const char *path, int flags,
                                 struct scratch_room *room)
{
    struct place p;

    if (!find(s, directory, path, true, &p))
        return path;
    if (has_copy(&p))
        return use(p.copy, room);
    if (is_gone(&p)) {
        if (!(flags & O_CREAT))
            return errno = ENOENT, NULL;
        mark_back(&p);
        return scratch_file_note(p.path, SESSION_FILE_KEPT), use(p.copy, room);
    }
    if (!is_users(s, &p) || (flags & O_CREAT && flags & O_EXCL) ||
        access(p.path, W_OK)) {
        scratch_file_note(p.path, SESSION_FILE_WRITTEN);
        return path;
    }
    return open_copy(&p, flags, room);
}

const char *scratch_open(int directory, const char *path, int flags,
                         struct scratch_room *room)
{
    const struct session *s;
    struct place p;
    int saved = errno;

    if (!path || flags & O_PATH || flags & O_DIRECTORY)
        return path;
    if ((flags & O_ACCMODE) == O_RDONLY && !(flags & O_TRUNC))
        return scratch_look(directory, path, true, room);
    if (!is_data_name(path) || !(s = memsim_session()) ||
        !atomic_load(&s->process_count))
        return path;
    if (is_checkpoint_name(path) && scratch_session()) {
        const char *used = open_to_write(s, directory, path, flags, room);
        errno = used ? saved : errno;
        return used;
    }
    if (find(s, directory, path, true, &p))
        scratch_file_note(p.path, SESSION_FILE_WRITTEN);
    errno = saved;
    return path;
}

int memsim_scratch_path(const char *path, char *out)
{
    struct scratch_room room;
    const char *used =
        scratch_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, &room);

    if (!used)
        return errno;
    if (strlen(used) >= PATH_MAX)
        return ENAMETOOLONG;
    strcpy(out, used);
    return 0;
}

bool scratch_unlink(int directory, const char *path, int *result)
{
    const struct session *s;
    struct place p;
    int saved = errno;

    if (!path || !is_checkpoint_name(path) || !(s = scratch_session()) ||
        !find(s, directory, path, false, &p))
        return errno = saved, false;
    bool copied = has_copy(&p), gone = !copied && is_gone(&p);

    if (!copied && !gone && !is_users(s, &p))
        return errno = saved, false;
    if (gone) {
        errno = ENOENT;
        *result = -1;
        return true;
    }
    *result = p.exists ? mark_gone(&p) : 0;
    scratch_file_note(p.path, SESSION_FILE_KEPT);
    if (copied)
        unlink(p.copy);
    if (!*result)
        errno = saved;
    return true;
}

bool scratch_rmdir(int directory, const char *path)
{
    const struct session *s = scratch_session();
    struct place p;

    return s && path && find(s, directory, path, false, &p) && p.exists &&
           S_ISDIR(p.st.st_mode) && scratch_file_all_gone(p.path, p.copy, GONE);
}

/* Copies SOURCE with its MODE to TARGET, which appears whole or not at all. */
static int copy_whole(const char *source, mode_t mode, const char *target)
{
    struct scratch_room part;

    snprintf(part.path, sizeof part.path, "%.*s.memsim-part", PATH_MAX - 16,
             target);
    if (scratch_file_make(part.path, mode & 0777) ||
        scratch_file_copy(source, part.path))
        return -1;
    return (int)syscall(SYS_renameat2, AT_FDCWD, part.path, AT_FDCWD, target,
                        0);
}

/* Puts SOURCE in the place of TARGET, also on another file system. */
static int replace(const char *source, mode_t mode, const char *target)
{
    if (!syscall(SYS_renameat2, AT_FDCWD, source, AT_FDCWD, target, 0))
        return 0;
    if (errno != EXDEV || copy_whole(source, mode, target))
        return -1;
    unlink(source);
    return 0;
}

/* Moves FROM's file to TO, both places known; 0 or -1. The user's file stays.
 */
static int move(const struct session *s, const struct place *from,
                const struct place *to, bool to_copy)
{
    bool copied = has_copy(from), users = !copied && is_users(s, from);
    const char *source = copied ? from->copy : from->path;
    const char *target = to_copy ? to->copy : to->path;

    if (to_copy && scratch_file_parents(target))
        return -1;
    if (users ? copy_whole(source, from->st.st_mode, target)
              : replace(source, from->st.st_mode, target))
        return -1;
    if ((users || copied) && from->exists && mark_gone(from))
        return -1;
    scratch_file_note(to->path,
                      to_copy ? SESSION_FILE_KEPT : SESSION_FILE_WRITTEN);
    return 0;
}

/* A rename of a checkpoint, and what it is of and to. */
struct renaming {
    const struct session *session;
    struct place from, to;
    bool from_named, to_named; /* as checkpoints are */
};

/* Finds both places; false: it is not ours to do. */
static bool renaming_find(struct renaming *r, struct scratch_end from,
                          struct scratch_end to)
{
    if (!from.path || !to.path)
        return false;
    r->from_named = is_checkpoint_name(from.path);
    r->to_named = is_checkpoint_name(to.path);
    r->session = r->from_named || r->to_named ? scratch_session() : NULL;
    return r->session &&
           find(r->session, from.directory, from.path, false, &r->from) &&
           find(r->session, to.directory, to.path, false, &r->to);
}

/* Whether the target is the user's, or stands in for one of theirs. */
static bool is_to_copy(const struct renaming *r)
{
    return r->to_named && (has_copy(&r->to) || is_gone(&r->to) ||
                           is_users(r->session, &r->to));
}

/* Whether the file, which has no copy, is to be moved by us. */
static bool is_ours_to_move(const struct renaming *r, bool to_copy)
{
    bool users = r->from_named && is_users(r->session, &r->from);

    return (users || to_copy) && S_ISREG(r->from.st.st_mode);
}

bool scratch_rename(struct scratch_end from, struct scratch_end to, int *result)
{
    struct renaming r;
    int saved = errno;

    if (!renaming_find(&r, from, to))
        return errno = saved, false;
    bool copied = r.from_named && has_copy(&r.from);
    bool to_copy = is_to_copy(&r);

    *result = -1;
    if (!copied && r.from_named && is_gone(&r.from))
        return errno = ENOENT, true;
    errno = saved;
    if (!copied && !is_ours_to_move(&r, to_copy)) {
        if (r.to_named && r.from.exists)
            scratch_file_note(r.to.path, SESSION_FILE_WRITTEN);
        return false;
    }
    *result = move(r.session, &r.from, &r.to, to_copy);
    if (*result)
        return true;
    mark_back(&r.to);
    errno = saved;
    return true;
}
