/* SPDX-License-Identifier: Apache-2.0
 * Two passes: what the run renamed gets a name of its own beside its new place,
 * as long as it is at its old one; then each entry is put in place, and what
 * the copy does not have is removed. */
#include "memsim/run/kept_commit.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/run/file_tree.h"

#define MOVED ".memsim-moved"

/* What COPY stands in for (capture/core/files/place.h); "": nothing. */
static const char *stands_for(const char *copy, char text[PATH_MAX])
{
    ssize_t n = readlink(copy, text, PATH_MAX - 1);

    text[n > 0 ? n : 0] = '\0';
    return text[0] == '/' && text[1] == '/' ? text + 1 : "";
}

static bool is_directory(const char *path)
{
    struct stat st;

    return !lstat(path, &st) && S_ISDIR(st.st_mode);
}

static bool is_there(const char *path)
{
    struct stat st;

    return !lstat(path, &st);
}

typedef void entry_call(const struct session *s, const char *copy,
                        const char *path);

/* Two places of a directory. */
struct pair {
    const struct session *session;
    const char *copy, *path;
};

/* Calls EACH for the entries of DIRECTORY, in both places of PAIR. */
static void each_entry(const char *directory, struct pair pair,
                       entry_call *each)
{
    DIR *d = opendir(directory);

    for (const struct dirent *e; d && (e = readdir(d));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        char *inner = xasprintf("%s/%s", pair.copy, e->d_name);
        char *outer = xasprintf("%s/%s", pair.path, e->d_name);
        each(pair.session, inner, outer);
        free(inner);
        free(outer);
    }
    if (d)
        closedir(d);
}

static void moved_save(const struct session *s, const char *copy,
                       const char *path)
{
    char text[PATH_MAX];
    const char *old = stands_for(copy, text);
    struct stat st;

    if (is_directory(copy))
        each_entry(copy, (struct pair){s, copy, path}, moved_save);
    if (!*old || !strcmp(old, path) || lstat(copy, &st))
        return;
    char *moved = xasprintf("%s" MOVED, path);
    if (st.st_nlink < 2 || link(old, moved))
        file_tree_move(old, moved);
    free(moved);
}

/* When PATH was made, in ns; UINT64_MAX where the file system does not know. */
static uint64_t birth_ns(const char *path)
{
    struct statx st;

    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &st) ||
        !(st.stx_mask & STATX_BTIME))
        return UINT64_MAX;
    return (uint64_t)st.stx_btime.tv_sec * 1000000000 + st.stx_btime.tv_nsec;
}

/* The copy does not have PATH: the run removed it, or somebody else has made
 * it since the run began, which stays. */
static void surplus_remove(const struct session *s, const char *copy,
                           const char *path)
{
    if (!is_there(copy) && birth_ns(path) < s->start_unix_ns)
        file_tree_remove(path);
}

static void file_put(const struct session *s, const char *copy,
                     const char *path)
{
    char text[PATH_MAX];
    const char *old = stands_for(copy, text);
    char *moved = xasprintf("%s" MOVED, path);

    if (is_directory(copy)) {
        struct stat st;

        if (!is_directory(path))
            file_tree_remove(path);
        mkdir(path, 0700);
        if (!lstat(copy, &st))
            chmod(path, st.st_mode & 07777);
        each_entry(copy, (struct pair){s, copy, path}, file_put);
        each_entry(path, (struct pair){s, copy, path}, surplus_remove);
    } else if (*old) {
        if (strcmp(old, path)) {
            file_tree_remove(path);
            file_tree_move(moved, path);
        }
    } else {
        file_tree_remove(path);
        file_tree_move(copy, path);
    }
    free(moved);
}

void kept_commit(const struct rundir *dir, const char *path)
{
    char *copy = xasprintf("%s/" SESSION_SCRATCH "%s", dir->path, path);

    moved_save(dir->session, copy, path);
    if (is_there(copy))
        file_put(dir->session, copy, path);
    else
        file_tree_remove(path);
    free(copy);
}
