/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/files/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture/core/run/process.h"
#include "common/base/text_begins.h"

#define LINKS_MAX 40 /* of a path, as in Linux */

/* --- the run's files ------------------------------------------------------ */

/* NULL where it cannot be mapped, and while it is: that looks at files, too. */
static place_entry *place_table(void)
{
    static place_entry *_Atomic mapped;
    static _Thread_local bool mapping;
    place_entry *there = atomic_load(&mapped), *none = NULL;
    struct stat st;

    if (there || mapping)
        return there;
    mapping = true;
    int fd = process_file(SESSION_PLACES);
    mapping = false;
    void *p = MAP_FAILED;
    if (fd >= 0 && !fstat(fd, &st) && st.st_size >= (off_t)PLACES_BYTES)
        p = mmap(NULL, PLACES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (p == MAP_FAILED)
        return NULL;
    if (atomic_compare_exchange_strong(&mapped, &none, p))
        return p;
    munmap(p, PLACES_BYTES); /* another thread was first */
    return none;
}

bool place_known(enum place_kind kind, uint64_t hash)
{
    place_entry *t = place_table();

    return t && place_seek(t, kind, hash, false);
}

void place_add(enum place_kind kind, uint64_t hash)
{
    place_entry *t = place_table();

    if (t)
        place_seek(t, kind, hash, true);
}

void place_log(char change, const char *path, const char *to)
{
    struct iovec parts[] = {{&change, 1},
                            {(void *)path, strlen(path) + 1},
                            {(void *)to, to ? strlen(to) + 1 : 0}};
    int fd = process_file(SESSION_CHANGES);

    if (fd < 0)
        return;
    fcntl(fd, F_SETFL, O_APPEND);
    if (writev(fd, parts, 3) < 0)
        memsim_note("%s/" SESSION_CHANGES ": cannot write it: %s",
                    memsim_session()->directory, strerror(errno));
    close(fd);
}

/* --- paths ---------------------------------------------------------------- */

bool place_stat(const char *path, struct stat *st)
{
    return !syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

bool place_link(const char *path, char *text)
{
    long n = syscall(SYS_readlinkat, AT_FDCWD, path, text, PATH_MAX - 1);

    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

bool place_copy(const struct session *s, const char *path, char *out)
{
    return snprintf(out, PATH_MAX, "%s/" SESSION_SCRATCH "%s", s->directory,
                    path) < PATH_MAX - 16;
}

bool place_join(char *path, const char *name, size_t length)
{
    size_t at = strlen(path);

    if (at + length + 2 > PATH_MAX)
        return false;
    path[at] = '/';
    memcpy(path + at + 1, name, length);
    path[at + 1 + length] = '\0';
    return true;
}

/* A path on its way: what is found, and what is left of it. */
struct walk {
    const struct session *session;
    struct place *place;
    char rest[PATH_MAX];
    bool follow;
    int links;
};

static void walk_reset(struct walk *w)
{
    *w->place->path = *w->place->real = '\0';
    w->place->copied = w->place->is_copy = false;
}

/* Starts again at BASE/TEXT, or at TEXT where that is absolute. */
static bool walk_restart(struct walk *w, const char *base, const char *text)
{
    char joined[PATH_MAX];
    int n = snprintf(joined, sizeof joined, "%s/%s/%s",
                     *text == '/' ? "" : base, text, w->rest);

    if (n >= PATH_MAX)
        return false;
    memcpy(w->rest, joined, (size_t)n + 1);
    walk_reset(w);
    return true;
}

static void cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
}

static bool step_up(struct walk *w)
{
    char above[PATH_MAX];

    memcpy(above, w->place->path, sizeof above);
    cut_last(above);
    return walk_restart(w, above, "");
}

/* A link at the place: TEXT. */
static bool step_link(struct walk *w, const char *text)
{
    struct place *p = w->place;
    size_t length = strlen(text);
    char above[PATH_MAX];

    if (++w->links > LINKS_MAX ||
        (text_begins(p->real, "/proc/") && strstr(text, ":[")) ||
        (length > 10 && !strcmp(text + length - 10, " (deleted)")))
        return false;
    memcpy(above, p->path, sizeof above);
    cut_last(above);
    return walk_restart(w, above, text);
}

/* Whether PATH is the copies' tree, below which paths begin anew. */
static bool is_tree(const struct session *s, const char *path)
{
    size_t run = strlen(s->directory);

    return !strncmp(path, s->directory, run) &&
           !strcmp(path + run, "/" SESSION_SCRATCH);
}

static bool step_down(struct walk *w, const char *name, size_t length,
                      bool follow)
{
    struct place *p = w->place;
    char text[PATH_MAX];

    if (!place_join(p->path, name, length))
        return false;
    if (is_tree(w->session, p->path))
        return walk_reset(w), true;
    if (!p->is_copy && place_is_root(p->path)) {
        p->copied = p->is_copy = true;
        if (!place_copy(w->session, p->path, p->real))
            return false;
    } else if (!place_join(p->real, name, length)) {
        return false;
    }
    if (!place_link(p->real, text))
        return true;
    if (p->is_copy && text[0] == '/' && text[1] == '/') {
        strcpy(p->real, text + 1);
        p->is_copy = false;
        return true;
    }
    return !follow || step_link(w, text);
}

static bool walk_on(struct walk *w)
{
    while (w->rest[strspn(w->rest, "/")]) {
        char name[NAME_MAX + 1];
        const char *at = w->rest + strspn(w->rest, "/");
        size_t length = strcspn(at, "/");

        if (length > NAME_MAX)
            return false;
        memcpy(name, at, length);
        name[length] = '\0';
        memmove(w->rest, at + length, strlen(at + length) + 1);
        if (!strcmp(name, "."))
            continue;
        if (!(strcmp(name, "..") ? step_down(w, name, length,
                                             *w->rest || w->follow)
                                 : step_up(w)))
            return false;
    }
    return true;
}

/* The path of an openat()'s DIRECTORY. */
static bool base_path(int directory, char *path)
{
    char link[32];

    if (directory == AT_FDCWD)
        return syscall(SYS_getcwd, path, (size_t)PATH_MAX) > 0 && *path == '/';
    snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
    return place_link(link, path) && *path == '/';
}

static bool walk_begin(struct walk *w, int directory, const char *path)
{
    char base[PATH_MAX] = "";

    if (strlen(path) >= sizeof w->rest)
        return false;
    strcpy(w->rest, path); /* which may be the place's own */
    walk_reset(w);
    if (*w->rest == '/')
        return true;
    if (!base_path(directory, base))
        return false;
    if (atomic_load(&w->session->root_count))
        return walk_restart(w, base, "");
    if (base[1]) {
        strcpy(w->place->path, base);
        strcpy(w->place->real, base);
    }
    return true;
}

bool place_find(const struct session *s, int directory, const char *path,
                bool follow, struct place *p)
{
    struct walk w = {.session = s, .place = p, .follow = follow};
    size_t run = strlen(s->directory);

    if (!*path || !place_table() || !walk_begin(&w, directory, path) ||
        !walk_on(&w) ||
        (!strncmp(p->path, s->directory, run) && p->path[run] == '/'))
        *p->path = '\0';
    return *p->path;
}
