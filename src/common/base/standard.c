/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void standard_hold(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/", O_PATH | O_CLOEXEC) < 0)
            return; /* the lowest free number is FD: the loop goes upwards */
}

int standard_finish(struct err *err)
{
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    return err_set(err, "standard output: cannot write it: %s",
                   strerror(errno ? errno : EIO));
}
