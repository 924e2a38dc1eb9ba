/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/quiet_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memsim/run/rundir.h"

#define TAIL_BYTES 4096
#define TAIL_LINES 12

void quiet_show(int fd)
{
    char text[TAIL_BYTES + 1];
    off_t end = lseek(fd, 0, SEEK_END);
    off_t start = end > TAIL_BYTES ? end - TAIL_BYTES : 0;
    ssize_t n = pread(fd, text, TAIL_BYTES, start);
    int lines = 0;

    if (n <= 0)
        return;
    text[n] = '\0';
    char *at = text + n - (text[n - 1] == '\n');
    while (at > text && !(at[-1] == '\n' && ++lines == TAIL_LINES))
        at--;
    for (char *line; (line = strsep(&at, "\n")) && (*line || at);)
        fprintf(stderr, "  | %s\n", line);
}

int quiet_check_outer(const char *command, struct err *err)
{
    const char *outer = getenv("MEMSIM_SESSION");

    if (!outer || !rundir_is_live(outer))
        return 0;
    return err_set(err, "already inside a memsim run (%s); start %s by itself",
                   outer, command);
}
