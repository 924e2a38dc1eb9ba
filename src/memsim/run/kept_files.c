/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/kept_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "common/trace/session_files.h"
#include "memsim/run/file_tree.h"
#include "memsim/run/kept_commit.h"
#include "memsim/run/rundir_internal.h"

/* --- before --------------------------------------------------------------- */

int kept_files_begin(const struct rundir *dir, struct err *err)
{
    char path[PATH_MAX];

    if (!getcwd(dir->session->start_directory,
                sizeof dir->session->start_directory))
        dir->session->start_directory[0] = '\0';
    rundir_file(dir->path, SESSION_PLACES, path, sizeof path);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, PLACES_BYTES);
    if (fd >= 0)
        close(fd);
    if (!error)
        return 0;
    return err_set(err, "%s: cannot write it: %s; use -o on another disk", path,
                   strerror(error));
}

/* --- the log of changes --------------------------------------------------- */

struct paths {
    char **at;
    size_t count;
};

static void paths_add(struct paths *p, const char *path)
{
    for (size_t i = 0; i < p->count; i++)
        if (!strcmp(p->at[i], path))
            return;
    p->at = xreallocarray(p->at, p->count + 1, sizeof *p->at);
    p->at[p->count++] = xstrdup(path);
}

static void paths_free(struct paths *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->at[i]);
    free(p->at);
}

/* What the run has changed. */
struct changes {
    struct paths roots, made, left;
};

/* Whether PATH is DIRECTORY or below it. */
static bool is_below(const char *path, const char *directory)
{
    size_t n = strlen(directory);

    return !strncmp(path, directory, n) && (!path[n] || path[n] == '/');
}

/* What was made at FROM, or below it, may be at TO now. */
static void made_follow(struct paths *made, const char *from, const char *to)
{
    size_t count = made->count;

    for (size_t i = 0; i < count; i++)
        if (is_below(made->at[i], from)) {
            char *moved = xasprintf("%s%s", to, made->at[i] + strlen(from));
            paths_add(made, moved);
            free(moved);
        }
}

/* Adds the record at TEXT of SIZE bytes; returns its size, 0: it is cut. */
static size_t changes_add(struct changes *c, const char *text, size_t size)
{
    const char *path = text + 1, *end = memchr(text, '\0', size);
    const char *to = end ? end + 1 : NULL;

    if (!end)
        return 0;
    switch (*text) {
    case CHANGE_ROOT:
        paths_add(&c->roots, path);
        break;
    case CHANGE_MADE:
        paths_add(&c->made, path);
        break;
    case CHANGE_LEFT:
        paths_add(&c->left, path);
        break;
    case CHANGE_RENAMED:
        end = memchr(to, '\0', size - (size_t)(to - text));
        if (!end)
            return 0;
        made_follow(&c->made, path, to);
        break;
    default:
        return 0;
    }
    return (size_t)(end - text) + 1;
}

static void changes_read(const struct rundir *dir, struct changes *c)
{
    char path[PATH_MAX];
    struct stat st;

    rundir_file(dir->path, SESSION_CHANGES, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    size_t size = fd < 0 || fstat(fd, &st) ? 0 : (size_t)st.st_size;
    char *text = xcalloc(size + 1, 1);
    ssize_t got = size ? read(fd, text, size) : 0;

    for (size_t at = 0, n = 1; n && got > 0 && at < (size_t)got; at += n)
        n = changes_add(c, text + at, (size_t)got - at);
    free(text);
    if (fd >= 0)
        close(fd);
}

/* --- what the run made ---------------------------------------------------- */

static place_entry *places_map(const struct rundir *dir)
{
    char path[PATH_MAX];
    struct stat st;

    rundir_file(dir->path, SESSION_PLACES, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    void *p = fd >= 0 && !fstat(fd, &st) && st.st_size >= (off_t)PLACES_BYTES
                  ? mmap(NULL, PLACES_BYTES, PROT_READ, MAP_SHARED, fd, 0)
                  : MAP_FAILED;
    if (fd >= 0)
        close(fd);
    return p == MAP_FAILED ? NULL : p;
}

static bool made_directory(place_entry *places, const char *path)
{
    struct stat st;

    return places && !lstat(path, &st) && S_ISDIR(st.st_mode) &&
           place_seek(places, PLACE_MADE_DIRECTORY,
                      place_hash_inode(st.st_dev, st.st_ino), false);
}

/* A name such as checkpoint-6, step_100 or epoch=3: of one checkpoint. */
static bool is_of_one(const char *path)
{
    static const char *const words[] = {"checkpoint", "ckpt", "step", "iter",
                                        "epoch"};
    const char *name = strrchr(path, '/');
    bool numbered = name && strpbrk(name, "0123456789");

    for (size_t i = 0; numbered && i < sizeof words / sizeof *words; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void file_taken(struct session *s, const char *path)
{
    for (uint32_t i = 0; i < SESSION_FILES && i < s->file_count; i++)
        if (!strcmp(s->files[i].path, path))
            atomic_store(&s->files[i].kind, SESSION_FILE_TAKEN);
}

/* Takes PATH to the copies, or removes it where these are not kept. */
static void file_take(const struct rundir *dir, const char *path)
{
    char *copy = xasprintf("%s/" SESSION_SCRATCH "%s", dir->path, path);

    if (dir->temporary || file_tree_move(path, copy))
        file_tree_remove(path);
    free(copy);
}

/* Takes the checkpoint PATH, with its directory where that is its own. */
static void take_checkpoint(const struct rundir *dir, place_entry *places,
                            const char *path)
{
    char above[PATH_MAX];
    struct stat st;

    if (lstat(path, &st) || S_ISDIR(st.st_mode))
        return;
    snprintf(above, sizeof above, "%s", path);
    *strrchr(above, '/') = '\0';
    bool whole = made_directory(places, above) && is_of_one(above);
    file_take(dir, whole ? above : path);
    while (made_directory(places, above) && !rmdir(above))
        *strrchr(above, '/') = '\0';
}

static bool has_unknown(const struct session *s)
{
    uint32_t count = session_slots(s);

    for (uint32_t i = 0; i < count; i++)
        if (atomic_load(&s->processes[i].unknown_reads))
            return true;
    return false;
}

static void made_take(const struct rundir *dir, const struct changes *c)
{
    place_entry *places = places_map(dir);
    struct session *s = dir->session;

    for (size_t i = 0; i < c->made.count && has_unknown(s); i++) {
        file_taken(s, c->made.at[i]);
        take_checkpoint(dir, places, c->made.at[i]);
    }
    for (size_t i = 0; i < c->left.count; i++)
        file_take(dir, c->left.at[i]);
    if (places)
        munmap(places, PLACES_BYTES);
    size_t from = offsetof(struct session, files);
    if (pwrite(dir->file, (const char *)s + from, sizeof s->files,
               (off_t)from) < 0)
        return; /* a later report calls them written, not taken */
}

/* --- after ---------------------------------------------------------------- */

static bool is_inside(const struct paths *roots, const char *path)
{
    for (size_t i = 0; i < roots->count; i++)
        if (strcmp(roots->at[i], path) && is_below(path, roots->at[i]))
            return true;
    return false;
}

static void shared_remove(const struct rundir *dir)
{
    static const char *const names[] = {SESSION_PLACES, SESSION_CHANGES};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        rundir_file(dir->path, names[i], path, sizeof path);
        unlink(path);
    }
}

void kept_files_end(const struct rundir *dir)
{
    struct changes c = {0};

    changes_read(dir, &c);
    if (atomic_load(&dir->session->process_count))
        made_take(dir, &c);
    else
        for (size_t i = 0; i < c.roots.count; i++)
            if (!is_inside(&c.roots, c.roots.at[i]))
                kept_commit(dir, c.roots.at[i]);
    if (!dir->session->background)
        shared_remove(dir);
    paths_free(&c.roots);
    paths_free(&c.made);
    paths_free(&c.left);
}
