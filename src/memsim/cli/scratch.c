/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/temporary.h"
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

int scratch_make(struct scratch *s, struct err *err)
{
    const char *in = getenv("TMPDIR");
    int length = snprintf(s->path, sizeof s->path, "%s/memsim-traces.XXXXXX",
                          in && *in ? in : "/tmp");

    if (length >= (int)sizeof s->path || !mkdtemp(s->path)) {
        s->path[0] = '\0';
        return err_set(err, "%s: cannot make a directory there; set TMPDIR",
                       in && *in ? in : "/tmp");
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
