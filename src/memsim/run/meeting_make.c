/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/meeting_make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/trace/meeting.h"

static bool write_at(int fd, const void *from, size_t bytes, off_t at)
{
    ssize_t n = pwrite(fd, from, bytes, at);

    if (n >= 0 && n != (ssize_t)bytes)
        errno = ENOSPC;
    return n == (ssize_t)bytes;
}

static bool stands_write(const struct launch *launch, int fd)
{
    size_t bytes = launch->world * sizeof(uint32_t);
    uint32_t *stands =
        rank_axes_stands(&launch->axes, &launch->ranks, launch->world);
    bool written =
        write_at(fd, stands, bytes, (off_t)sizeof(struct meeting_file));
    free(stands);
    return written;
}

int meeting_make(const struct launch *launch, const char *path)
{
    const struct {
        uint64_t magic, bytes;
        uint32_t world;
    } head = {MEETING_MAGIC, sizeof(struct meeting_file), launch->world};
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return -1;
    /* no page may be missing later: the programs would die of it */
    errno = posix_fallocate(fd, 0, (off_t)sizeof(struct meeting_file));
    bool made = !errno && (!launch->world || stands_write(launch, fd)) &&
                write_at(fd, &head, sizeof head, 0);
    int error = errno;
    int closed = close(fd);
    errno = made ? errno : error;
    return closed || !made ? -1 : 0;
}
