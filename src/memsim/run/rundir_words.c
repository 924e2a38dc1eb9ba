/* SPDX-License-Identifier: Apache-2.0
 * Files of words, each ended by a NUL: the command, and its options. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file_open.h"
#include "common/base/xmalloc.h"
#include "memsim/run/rundir_internal.h"

int rundir_file(const char *dir, const char *name, char *path, size_t size)
{
    int width = snprintf(path, size, "%s/%s", dir, name);

    return width >= 0 && (size_t)width < size ? 0 : -1;
}

int rundir_write_words(const struct rundir *dir, const char *name,
                       char *const *words, struct err *err)
{
    char path[PATH_MAX];

    rundir_file(dir->path, name, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    for (; f && *words; words++)
        fwrite(*words, 1, strlen(*words) + 1, f);
    if (!f || ferror(f) | fclose(f))
        return err_set(err, "%s: cannot write it: %s", path, strerror(errno));
    return 0;
}

static char *read_whole(const char *path, size_t *length, struct err *err)
{
    int fd = file_open(path, err);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    size_t capacity = 0;
    char *text = NULL;

    *length = 0;
    if (!f) {
        err_set(err, "%s: %s", path, strerror(errno));
        return NULL;
    }
    for (size_t got = 1; got; *length += got) {
        while (capacity < *length + 4096)
            xgrow(&text, capacity, &capacity, 1);
        got = fread(text + *length, 1, capacity - *length - 1, f);
    }
    text[*length] = '\0';
    fclose(f);
    return text;
}

/* TEXT, of LENGTH and a NUL, cut at its NULs. */
static char **words_split(const char *text, size_t length)
{
    size_t count = 0;

    for (size_t i = 0; i < length; i++)
        count += !text[i];
    char **words = xmalloc((count + 1) * sizeof *words + length + 1);
    char *at = memcpy(words + count + 1, text, length + 1);
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        words[i] = at;
    words[count] = NULL;
    return words;
}

static char **words_read(const char *path, struct err *err)
{
    size_t length;
    char *text = read_whole(path, &length, err);
    char **words = text ? words_split(text, length) : NULL;

    free(text);
    return words;
}

int rundir_read_words(const char *directory, const char *name, char ***words,
                      struct err *err)
{
    char path[PATH_MAX];

    *words = NULL;
    rundir_file(directory, name, path, sizeof path);
    if (access(path, F_OK) && errno == ENOENT)
        return 0;
    *words = words_read(path, err);
    return *words ? 0 : -1;
}

char **rundir_command(const struct rundir *dir, struct err *err)
{
    char path[PATH_MAX];

    rundir_file(dir->path, SESSION_COMMAND, path, sizeof path);
    return words_read(path, err);
}
