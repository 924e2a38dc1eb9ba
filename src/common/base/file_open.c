/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_name(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a pipe";
    return S_ISSOCK(mode) ? "a socket" : "a device";
}

int file_open(const char *path, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st)) {
        err_set(err, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        err_set(err, "%s: is %s; a plain file is needed here", path,
                kind_name(st.st_mode));
        close(fd);
        fd = -1;
    }
    return fd;
}
