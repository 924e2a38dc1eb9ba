/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/cli/python_start.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/xmalloc.h"
#include "memsim/run/spawn.h"

/* This program's path, in PATH. Returns 0 or -1. */
static int own_path(char *path, size_t size, struct err *err)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);

    if (length < 0)
        return err_set(err, "/proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    return 0;
}

void python_start(const char *python, const char *script, char *const *words,
                  const char *needs, struct err *err)
{
    char libraries[PATH_MAX], own[PATH_MAX];
    size_t count = 0;

    if (own_path(own, sizeof own, err) ||
        spawn_library_dir(getenv("MEMSIM_LIBDIR"), libraries, sizeof libraries,
                          err))
        return;
    while (words[count])
        count++;
    char **all = xcalloc(count + 4, sizeof *all);
    all[0] = (char *)python;
    all[1] = xasprintf("%s/%s", libraries, script);
    all[2] = own;
    memcpy(all + 3, words, count * sizeof *all);
    execvp(python, all);
    err_set(err, "%s: %s; --python names one that has %s", python,
            strerror(errno), needs);
    free(all[1]);
    free(all);
}
