/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is to be written, by whom. */
struct work {
    void (*write)(const void *what, FILE *out);
    const void *what;
};

static int write_stream(const struct work *work, FILE *out)
{
    errno = 0;
    work->write(work->what, out);
    fflush(out);
    return ferror(out) ? -1 : 0;
}

/* What is not itself a plain file must not be replaced: a pipe, a device, a
 * link, which /dev/stderr is. */
static bool is_special(const char *path)
{
    struct stat st;

    return !lstat(path, &st) && !S_ISREG(st.st_mode);
}

static int write_special(const struct work *work, const char *path)
{
    FILE *out = fopen(path, "we");

    if (!out)
        return -1;
    int rc = write_stream(work, out);
    return fclose(out) | rc;
}

/* A file that is there keeps its mode; a new one is nobody else's to read. */
static mode_t file_mode(const char *path)
{
    struct stat st;

    return stat(path, &st) ? 0600 : st.st_mode & 0777;
}

static int write_replacing(const struct work *work, const char *path)
{
    char temporary[PATH_MAX];

    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >=
        (int)sizeof temporary) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(temporary, O_CLOEXEC);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out)
        return -1;
    int rc = write_stream(work, out) | fchmod(fd, file_mode(path));
    if (fclose(out) | rc || rename(temporary, path)) {
        int error = errno;
        unlink(temporary);
        errno = error;
        return -1;
    }
    return 0;
}

int file_write(void (*write)(const void *what, FILE *out),
                      const void *what, const char *path, struct err *err)
{
    const struct work work = {write, what};
    int rc;

    if (!strcmp(path, "-"))
        rc = write_stream(&work, stdout);
    else if (is_special(path))
        rc = write_special(&work, path);
    else
        rc = write_replacing(&work, path);
    if (rc)
        return err_set(err, "%s: cannot write it: %s", path, strerror(errno));
    return 0;
}
