/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/file_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/xmalloc.h"

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

void file_tree_remove(const char *path)
{
    if (!unlink(path) || errno == ENOENT)
        return;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (is_dots(e->d_name))
            continue;
        char *inner = xasprintf("%s/%s", path, e->d_name);
        file_tree_remove(inner);
        free(inner);
    }
    if (d)
        closedir(d);
    rmdir(path);
}

static void make_parents(const char *path)
{
    char *part = xstrdup(path);

    for (char *slash = strchr(part + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0777);
        *slash = '/';
    }
    free(part);
}

static int copy_link(const char *from, const char *to)
{
    char text[PATH_MAX];
    ssize_t n = readlink(from, text, sizeof text - 1);

    if (n < 0)
        return -1;
    text[n] = '\0';
    return symlink(text, to);
}

static int copy_file(const char *from, const char *to, const struct stat *st)
{
    const struct timespec times[] = {st->st_atim, st->st_mtim};
    int source = open(from, O_RDONLY | O_CLOEXEC);
    int target = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                      st->st_mode & 0777);
    ssize_t n = source < 0 || target < 0 ? -1 : 1;

    while (n > 0)
        n = sendfile(target, source, NULL, (size_t)1 << 30);
    int error = errno;
    if (target >= 0)
        futimens(target, times);
    if (target >= 0 && close(target) && n >= 0) {
        error = errno;
        n = -1;
    }
    if (source >= 0)
        close(source);
    errno = error;
    return n < 0 ? -1 : 0;
}

static int move_entries(const char *from, const char *to, mode_t mode)
{
    int rc = mkdir(to, 0700);
    DIR *d = rc ? NULL : opendir(from);

    for (const struct dirent *e; !rc && d && (e = readdir(d));) {
        if (is_dots(e->d_name))
            continue;
        char *inner = xasprintf("%s/%s", from, e->d_name);
        char *outer = xasprintf("%s/%s", to, e->d_name);
        rc = file_tree_move(inner, outer);
        free(inner);
        free(outer);
    }
    if (d)
        closedir(d);
    return rc ? rc : chmod(to, mode & 07777);
}

int file_tree_move(const char *from, const char *to)
{
    struct stat st;

    make_parents(to);
    if (!rename(from, to))
        return 0;
    if (errno != EXDEV || lstat(from, &st))
        return -1;
    int rc = S_ISDIR(st.st_mode)   ? move_entries(from, to, st.st_mode)
             : S_ISLNK(st.st_mode) ? copy_link(from, to)
                                   : copy_file(from, to, &st);
    if (!rc)
        file_tree_remove(from);
    return rc;
}
