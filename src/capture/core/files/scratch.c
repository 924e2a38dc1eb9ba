/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/files/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/files/judge.h"
#include "capture/core/files/mirror.h"
#include "capture/core/files/place.h"
#include "capture/core/files/scratch_file.h"
#include "capture/core/run/process.h"

/* The session where the user's files are kept. */
static const struct session *scratch_session(void)
{
    const struct session *s = memsim_session();

    return s && !s->write_through ? s : NULL;
}

static bool has_copies(const struct session *s)
{
    return atomic_load_explicit(&s->root_count, memory_order_relaxed);
}

static bool has_gpu(const struct session *s)
{
    return atomic_load(&s->process_count);
}

static const char *use_room(const char *path, struct scratch_room *room)
{
    memcpy(room->path, path, strlen(path) + 1);
    return room->path;
}

/* The copy of P, whether or not it is there. */
static const char *use_copy(const struct session *s, const struct place *p,
                            struct scratch_room *room)
{
    if (place_copy(s, p->path, room->path))
        return room->path;
    return errno = ENAMETOOLONG, NULL;
}

/* --- looking -------------------------------------------------------------- */

/* A directory of the user's under another name: by descriptors to it, later
 * calls would find the old one. */
static bool is_moved_directory(const struct place *p)
{
    struct stat st;

    return !p->is_copy && strcmp(p->path, p->real) &&
           place_stat(p->real, &st) && S_ISDIR(st.st_mode);
}

const char *scratch_look(int directory, const char *path, bool follow,
                         struct scratch_room *room)
{
    const struct session *s = scratch_session();
    struct place p;
    int saved = errno;

    if (!path || !s || !has_copies(s) ||
        !place_find(s, directory, path, follow, &p) || !p.copied)
        return errno = saved, path;
    errno = saved;
    if (!is_moved_directory(&p))
        return use_room(p.real, room);
    return mirror_directory(s, p.path) ? NULL : use_copy(s, &p, room);
}

void scratch_unmap(char *text)
{
    const struct session *s = scratch_session();
    size_t run = s ? strlen(s->directory) : 0, tree = strlen(SESSION_SCRATCH);

    if (!s || strncmp(text, s->directory, run) || text[run] != '/' ||
        strncmp(text + run + 1, SESSION_SCRATCH "/", tree + 1))
        return;
    memmove(text, text + run + 1 + tree, strlen(text + run + 1 + tree) + 1);
}

/* --- changing ------------------------------------------------------------- */

/* Finds PATH, which is about to be changed, with all above it in the copies'
 * tree where it has to be. False: it is the run's own, or -1 in *RC. */
static bool change_find(const struct session *s, struct scratch_end at,
                        enum scratch_use how, struct place *p, int *rc)
{
    bool follow = how == SCRATCH_CONTENT;
    char root[PATH_MAX];

    *rc = 0;
    if (!at.path || !place_find(s, at.directory, at.path, follow, p))
        return false;
    if (!p->copied) {
        if (!judge_root(s, p, how <= SCRATCH_ITSELF, root))
            return false;
        *rc = mirror_root(s, root);
    }
    if (!*rc)
        *rc = mirror_parents(s, p->path);
    if (*rc || !place_find(s, AT_FDCWD, p->path, follow, p))
        return *rc = -1, false;
    return true;
}

/* What the run makes where nothing is kept, and is a checkpoint by its name. */
static void made_note(const struct session *s, const struct place *p)
{
    struct stat st;

    if (!*p->path || !judge_is_data(p->path))
        return;
    if (has_gpu(s))
        scratch_file_note(p->path, SESSION_FILE_WRITTEN);
    if (!judge_is_checkpoint(p->path) || place_stat(p->real, &st))
        return;
    place_add(PLACE_MADE, place_hash_path(p->path));
    if (has_gpu(s))
        place_log(CHANGE_MADE, p->path, NULL);
}

static bool is_directory(const char *path)
{
    struct stat st;

    return place_stat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_file(const char *path)
{
    struct stat st;

    return place_stat(path, &st) && S_ISREG(st.st_mode);
}

/* The user's at P, which stands in the copies' tree, is about to be changed by
 * a call that KEEPS its content. */
static const char *change_users(const struct session *s, const struct place *p,
                                bool keeps, struct scratch_room *room)
{
    if (is_directory(p->real))
        return mirror_directory(s, p->path) ? NULL : use_copy(s, p, room);
    if (!is_file(p->real))
        return use_room(p->real, room);
    if (mirror_file(s, p->path, p->real, keeps))
        return NULL;
    scratch_file_note(p->path, SESSION_FILE_KEPT);
    return use_copy(s, p, room);
}

const char *scratch_change(int directory, const char *path,
                           enum scratch_use how, struct scratch_room *room)
{
    const struct session *s = scratch_session();
    struct scratch_end at = {.directory = directory, .path = path};
    struct place p;
    int saved = errno, rc;

    if (!s || !path)
        return path;
    if (!change_find(s, at, how, &p, &rc)) {
        if (how == SCRATCH_MAKE && !rc)
            made_note(s, &p);
        errno = rc ? errno : saved;
        return rc ? NULL : path;
    }
    errno = saved;
    if (p.is_copy)
        return use_copy(s, &p, room);
    if (how == SCRATCH_MAKE)
        return use_copy(s, &p, room); /* where it fails: something is there */
    if (how == SCRATCH_REMOVE && !is_directory(p.real)) {
        scratch_file_note(p.path, SESSION_FILE_KEPT);
        return use_copy(s, &p, room);
    }
    return change_users(s, &p, true, room);
}

const char *scratch_change_fd(int fd, struct scratch_room *room)
{
    char path[32];
    int saved = errno;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const char *used = scratch_change(AT_FDCWD, path, SCRATCH_CONTENT, room);
    if (used)
        errno = saved;
    if (used == path)
        return errno = 0, NULL;
    return used;
}

/* --- opening -------------------------------------------------------------- */

/* PATH is about to be written. */
static const char *open_to_write(const struct session *s,
                                 struct scratch_end at, int flags,
                                 struct scratch_room *room)
{
    struct place p;
    int rc;

    if (!change_find(s, at, SCRATCH_CONTENT, &p, &rc)) {
        if (!rc)
            made_note(s, &p);
        return rc ? NULL : at.path;
    }
    if (p.is_copy) {
        if (judge_is_data(p.path) && has_gpu(s))
            scratch_file_note(p.path, SESSION_FILE_WRITTEN);
        return use_copy(s, &p, room);
    }
    if ((flags & O_CREAT && flags & O_EXCL) ||
        syscall(SYS_faccessat, AT_FDCWD, p.real, W_OK))
        return use_room(p.real, room); /* where it fails */
    return change_users(s, &p, !(flags & O_TRUNC), room);
}

/* The same with --write-through: PATH, which the report names. */
static const char *written_through(int directory, const char *path)
{
    const struct session *s = memsim_session();
    struct place p;
    int saved = errno;

    if (s && has_gpu(s) && judge_is_data(path) &&
        place_find(s, directory, path, true, &p))
        scratch_file_note(p.path, SESSION_FILE_WRITTEN);
    errno = saved;
    return path;
}

const char *scratch_open(int directory, const char *path, int flags,
                         struct scratch_room *room)
{
    const struct session *s = scratch_session();
    int saved = errno;
    bool reads = flags & O_PATH || ((flags & O_ACCMODE) == O_RDONLY &&
                                    !(flags & (O_TRUNC | O_CREAT)));

    if (!path || !s)
        return reads || !path ? path : written_through(directory, path);
    if (reads)
        return scratch_look(directory, path, !(flags & O_NOFOLLOW), room);
    const char *used = open_to_write(
        s, (struct scratch_end){.directory = directory, .path = path}, flags,
        room);
    errno = used ? saved : errno;
    return used;
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

/* --- directories ---------------------------------------------------------- */

void scratch_made(int directory, const char *path)
{
    const struct session *s = scratch_session();
    struct stat st;
    int saved = errno;

    if (s && !syscall(SYS_newfstatat, directory, path, &st,
                      AT_SYMLINK_NOFOLLOW)) {
        uint64_t inode = place_hash_inode(st.st_dev, st.st_ino);

        place_add(PLACE_PLAIN, inode);
        place_add(PLACE_MADE_DIRECTORY, inode);
    }
    errno = saved;
}

const char *scratch_rmdir(int directory, const char *path,
                          struct scratch_room *room)
{
    const struct session *s = scratch_session();
    struct place p;

    if (!s || !has_copies(s) || !place_find(s, directory, path, false, &p) ||
        p.copied || !use_copy(s, &p, room) || !is_directory(room->path) ||
        mirror_root(s, p.path))
        return NULL;
    return room->path;
}

/* --- two paths ------------------------------------------------------------ */

/* A rename or a link on its way. */
struct pairing {
    const struct session *session;
    struct place from, to;
    bool from_copied, to_copied;
};

/* The root of a rename is what is renamed, at least; a directory that holds
 * roots becomes one. */
static bool is_to_copy(const struct session *s, const struct place *p,
                       char root[PATH_MAX])
{
    struct scratch_room copy;

    if (p->copied || judge_root(s, p, false, root))
        return true;
    memcpy(root, p->path, sizeof p->path);
    return has_copies(s) && use_copy(s, p, &copy) && is_directory(copy.path);
}

static int enter_place(const struct session *s, struct place *p,
                       const char *root)
{
    if (!p->copied && mirror_root(s, root))
        return -1;
    if (mirror_parents(s, p->path) ||
        !place_find(s, AT_FDCWD, p->path, false, p))
        return -1;
    return 0;
}

/* A directory of the user's as one of its own: it cannot be replaced, or
 * replace another, as long as something stands in for it. */
static int unfold_place(const struct session *s, struct place *p)
{
    if (p->is_copy || !is_directory(p->real))
        return 0;
    return mirror_directory(s, p->path);
}

/* Moves the file FROM to TO, also to another file system. Returns 1 or -1. */
static int move_file(const char *from, const char *to)
{
    struct stat st;

    if (!syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0))
        return 1;
    if (errno != EXDEV || !place_stat(from, &st) ||
        mirror_copy_whole(from, &st, to))
        return -1;
    return syscall(SYS_unlinkat, AT_FDCWD, from, 0) ? -1 : 1;
}

/* A file that the run made leaves the copies' tree. Returns 1 or -1. */
static int move_out(const struct pairing *r)
{
    made_note(r->session, &r->to);
    return move_file(r->from.real, r->to.path);
}

/* Nothing of it is kept. */
static int pair_plain(const struct pairing *r, enum scratch_pair pair)
{
    made_note(r->session, &r->to);
    if (pair == SCRATCH_RENAME && has_gpu(r->session))
        place_log(CHANGE_RENAMED, r->from.path, r->to.path);
    return 0;
}

/* What is renamed into the copies' tree: the run's own leaves no trace, the
 * user's stays. Returns 1 where it is done, else 0 or -1. */
static int move_in(const struct pairing *r, struct scratch_room *room)
{
    struct stat st;

    if (!place_stat(r->from.real, &st))
        return -1;
    if (S_ISREG(st.st_mode) && !judge_is_older(r->session, r->from.real) &&
        !is_directory(r->to.real))
        return use_copy(r->session, &r->to, room)
                   ? move_file(r->from.real, room->path)
                   : -1;
    if (S_ISDIR(st.st_mode) &&
        place_known(PLACE_MADE_DIRECTORY,
                    place_hash_inode(st.st_dev, st.st_ino)))
        place_log(CHANGE_LEFT, r->from.path, NULL);
    return 0;
}

/* What a rename does to the user's files, for the report. */
static void pair_note(const struct pairing *r, enum scratch_pair pair)
{
    if (!r->to.is_copy)
        scratch_file_note(r->to.path, SESSION_FILE_KEPT);
    if (!r->from.is_copy && r->from_copied && pair != SCRATCH_LINK)
        scratch_file_note(r->from.path, SESSION_FILE_KEPT);
}

static int pair_copied(struct pairing *r, enum scratch_pair pair,
                       struct scratch_end *from, struct scratch_end *to,
                       char roots[2][PATH_MAX])
{
    const struct session *s = r->session;
    struct stat st;
    int rc = 0;

    if (enter_place(s, &r->to, roots[1]))
        return -1;
    pair_note(r, pair);
    if (!r->from_copied && pair == SCRATCH_RENAME)
        rc = move_in(r, &to->room);
    if (rc)
        return rc;
    if (enter_place(s, &r->from, roots[0]) ||
        !use_copy(s, &r->from, &from->room) || !use_copy(s, &r->to, &to->room))
        return -1;
    if (place_stat(to->room.path, &st) &&
        (unfold_place(s, &r->from) || unfold_place(s, &r->to)))
        return -1;
    from->directory = to->directory = AT_FDCWD;
    from->path = from->room.path;
    to->path = to->room.path;
    return 0;
}

int scratch_pair(enum scratch_pair pair, struct scratch_end *from,
                 struct scratch_end *to)
{
    struct pairing r = {.session = scratch_session()};
    char roots[2][PATH_MAX];
    struct stat st;
    int saved = errno, rc;

    if (!r.session || !from->path || !to->path ||
        !place_find(r.session, from->directory, from->path, false, &r.from) ||
        !place_find(r.session, to->directory, to->path, false, &r.to))
        return errno = saved, 0;
    r.from_copied = is_to_copy(r.session, &r.from, roots[0]);
    r.to_copied = is_to_copy(r.session, &r.to, roots[1]);
    if (!place_stat(r.from.real, &st))
        rc = r.from_copied ? (errno = ENOENT, -1) : 0;
    else if (!r.from_copied && !r.to_copied)
        rc = pair_plain(&r, pair);
    else if (pair == SCRATCH_RENAME && r.from.is_copy && !r.to_copied &&
             S_ISREG(st.st_mode))
        rc = move_out(&r);
    else
        rc = pair_copied(&r, pair, from, to, roots);
    errno = rc < 0 ? errno : saved;
    return rc;
}
