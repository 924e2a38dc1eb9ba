/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct report_style plain = {.color = false};

static int write_stream(const struct report_ops *ops,
                        const struct result *result, FILE *out)
{
    errno = 0;
    ops->write(result, &plain, out);
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

static int write_special(const struct report_ops *ops,
                         const struct result *result, const char *path)
{
    FILE *out = fopen(path, "we");

    if (!out)
        return -1;
    int rc = write_stream(ops, result, out);
    return fclose(out) | rc;
}

static int write_replacing(const struct report_ops *ops,
                           const struct result *result, const char *path)
{
    char temporary[PATH_MAX];

    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >=
        (int)sizeof temporary) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (!out)
        return -1;
    int rc = write_stream(ops, result, out);
    if (fclose(out) | rc || rename(temporary, path)) {
        int error = errno;
        unlink(temporary);
        errno = error;
        return -1;
    }
    return 0;
}

int report_write(const struct report_ops *ops, const struct result *result,
                 const char *path, struct err *err)
{
    int rc;

    if (!strcmp(path, "-"))
        rc = write_stream(ops, result, stdout);
    else if (is_special(path))
        rc = write_special(ops, result, path);
    else
        rc = write_replacing(ops, result, path);
    if (rc)
        return err_set(err, "%s: cannot write it: %s", path, strerror(errno));
    return 0;
}
