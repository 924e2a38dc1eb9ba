/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/share.h"
#include "common/base/err.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From the directory of the running program, or of share_beside(). */
static const char *const places[] = {
    "../share/memsim",    /* PREFIX/bin */
    "../../share/memsim", /* PREFIX/lib/memsim */
    "../../data",         /* build/bin */
    "../../../data",      /* build/tests/unit, build/lib/memsim */
};

/* In place of the running program's; "": that one. */
static char beside[PATH_MAX];

void share_beside(const char *directory)
{
    snprintf(beside, sizeof beside, "%s", directory);
}

static int program_directory(char directory[PATH_MAX])
{
    if (*beside) {
        memcpy(directory, beside, sizeof beside);
        return 0;
    }
    ssize_t length = readlink("/proc/self/exe", directory, PATH_MAX - 1);

    if (length <= 0)
        return -1;
    directory[length] = '\0';
    *strrchr(directory, '/') = '\0';
    return 0;
}

static int path_join(const char *directory, const char *sub, char *path,
                     size_t size, struct err *err)
{
    int length = snprintf(path, size, "%s/%s", directory, sub);

    if (length < 0 || (size_t)length >= size)
        return err_set(err, "%s/%s: the path is too long", directory, sub);
    return 0;
}

int share_path(const char *sub, char *path, size_t size, struct err *err)
{
    const char *share = getenv("MEMSIM_SHARE");
    char program[PATH_MAX], candidate[PATH_MAX + 32];

    if (share && *share)
        return path_join(share, sub, path, size, err);
    if (program_directory(program))
        return err_set(err, "/proc/self/exe: %m; set MEMSIM_SHARE");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(candidate, sizeof candidate, "%s/%s/gpus", program, places[i]);
        if (access(candidate, X_OK))
            continue;
        *strrchr(candidate, '/') = '\0';
        return path_join(candidate, sub, path, size, err);
    }
    return err_set(err,
                   "%s/../share/memsim: no data directory here; set "
                   "MEMSIM_SHARE to the one that holds gpus/",
                   program);
}

static bool ends_in_json(const char *name)
{
    size_t length = strlen(name);

    return length > 5 && !strcmp(name + length - 5, ".json");
}

bool share_is_path(const char *name_or_path)
{
    return strchr(name_or_path, '/') || ends_in_json(name_or_path);
}

int share_select(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && ends_in_json(entry->d_name);
}
