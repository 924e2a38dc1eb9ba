/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/base/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int log_fd = -1;

__attribute__((constructor)) static void log_start(void)
{
    const char *path = getenv("MEMSIM_LOG");

    if (!path || !*path)
        return;
    log_fd = !strcmp(path, "stderr")
                 ? STDERR_FILENO
                 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

void memsim_log(const char *format, ...)
{
    char line[1024];
    va_list args;

    if (log_fd < 0)
        return;
    int head = snprintf(line, sizeof line, "memsim[%d]: ", (int)getpid());
    va_start(args, format);
    int n =
        vsnprintf(line + head, sizeof line - (size_t)head - 1, format, args);
    va_end(args);
    size_t length = (size_t)head + (n < 0 ? 0 : (size_t)n);
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    line[length++] = '\n';
    if (write(log_fd, line, length) < 0)
        log_fd = -1;
}
