/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/temporary.h"
#include "common/base/xmalloc.h"
#include "memsim/run/run.h"

#define PROCESSES_MAX 4096

/* Of the traces of processes, which may have gaps in their numbers. */
static void remove_all(const char *directory)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%.*s/%s", PATH_MAX - 16, directory, RUN_RANKS);
    unlink(path);
    for (uint32_t i = 0; i < PROCESSES_MAX && rmdir(directory); i++) {
        run_trace_path(directory, i, path, sizeof path);
        unlink(path);
    }
    rmdir(directory);
}

static const char *temporary_place(void)
{
    const char *place = getenv("TMPDIR");

    return place && *place ? place : "/tmp";
}

int scratch_file(void)
{
    char *path = xasprintf("%s/memsim-output-XXXXXX", temporary_place());
    int fd = mkostemp(path, O_CLOEXEC);

    if (fd >= 0)
        unlink(path);
    free(path);
    return fd;
}

int scratch_make(struct scratch *s, struct err *err)
{
    int length = snprintf(s->path, sizeof s->path, "%s/memsim-traces.XXXXXX",
                          temporary_place());

    if (length >= (int)sizeof s->path || !mkdtemp(s->path)) {
        s->path[0] = '\0';
        return err_set(err, "%s: cannot make a directory there; set TMPDIR",
                       temporary_place());
    }
    temporary_add(s->path, remove_all);
    return 0;
}

void scratch_remove(struct scratch *s)
{
    if (!*s->path)
        return;
    remove_all(s->path);
    temporary_forget(s->path);
    s->path[0] = '\0';
}
