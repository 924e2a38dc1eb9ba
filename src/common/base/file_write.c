/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/temporary.h"

/* What is to be written, by whom. */
struct work {
    void (*write)(const void *what, FILE *out);
    const void *what;
};

/* errno says what failed where this returns -1. */
static int write_stream(const struct work *work, FILE *out)
{
    errno = 0;
    work->write(work->what, out);
    return fflush(out) || ferror(out) ? -1 : 0;
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
    int error = errno;
    if (fclose(out) && !rc)
        return -1;
    errno = error;
    return rc;
}

/* The mode that open would give a new file. A file that another thread makes
 * meanwhile is private. */
static mode_t new_file_mode(void)
{
    mode_t mask = umask(0077);

    umask(mask);
    return 0666 & ~mask;
}

/* Gives FD, made by mkostemp with 0600, the mode of the file PATH that it is
 * to replace, or that of a new file. A file system without modes is no reason
 * for a new file to fail. */
static int set_mode(int fd, const char *path)
{
    struct stat st;

    if (!stat(path, &st))
        return fchmod(fd, st.st_mode & 0777);
    if (fchmod(fd, new_file_mode()))
        errno = 0;
    return 0;
}

/* On some file systems fsync is what reports a full disk or an exceeded
 * quota; that a file system or a sandbox has no fsync is no reason to fail. */
static int sync_file(int fd)
{
    return fsync(fd) && (errno == EIO || errno == ENOSPC || errno == EDQUOT)
               ? -1
               : 0;
}

static int write_whole(const struct work *work, int fd, const char *path)
{
    FILE *out = fdopen(fd, "w");

    if (!out) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    if (write_stream(work, out) || set_mode(fd, path) || sync_file(fd)) {
        int error = errno;
        fclose(out);
        errno = error;
        return -1;
    }
    return fclose(out);
}

static int write_replacing(const struct work *work, const char *path)
{
    char temporary[PATH_MAX];
    int fd = temporary_file(path, temporary);

    if (fd < 0)
        return -1;
    int rc = write_whole(work, fd, path);
    if (!rc)
        rc = rename(temporary, path);
    if (rc) {
        int error = errno;
        unlink(temporary);
        errno = error;
    }
    temporary_forget(temporary);
    return rc;
}

int file_write(void (*write)(const void *what, FILE *out), const void *what,
               const char *path, struct err *err)
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
        return err_set(err, "%s: cannot write it: %s",
                       strcmp(path, "-") ? path : "standard output",
                       strerror(errno ? errno : EIO));
    return 0;
}

struct bytes {
    const char *text;
    size_t length;
};

static void bytes_write(const void *what, FILE *out)
{
    const struct bytes *bytes = what;

    fwrite(bytes->text, 1, bytes->length, out);
}

int file_write_text(const char *text, size_t length, const char *path,
                    struct err *err)
{
    const struct bytes bytes = {text, length};

    return file_write(bytes_write, &bytes, path, err);
}

int file_write_check(const char *option, const char *output, const char *input,
                     struct err *err)
{
    struct stat out, in;

    if (!output || !input || !strcmp(output, "-") || !strcmp(input, "-"))
        return 0;
    if (stat(output, &out) || stat(input, &in) || !S_ISREG(out.st_mode) ||
        out.st_dev != in.st_dev || out.st_ino != in.st_ino)
        return 0;
    return err_set(err, "%s %s: this file is also read; give another name",
                   option, output);
}
