/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/host_limit.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

/* Version 1 writes this many, less a page's rest, where no limit is set. */
#define UNLIMITED (UINT64_C(1) << 62)

/* "max", or a number; UINT64_MAX: none. */
static uint64_t limit_read(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned long long bytes;
    bool is_number = file && fscanf(file, "%llu", &bytes) == 1;

    if (file)
        fclose(file);
    return is_number && bytes < UNLIMITED ? bytes : UINT64_MAX;
}

uint64_t host_limit_of(const char *root, const char *group, const char *file)
{
    char path[PATH_MAX], above[PATH_MAX];
    uint64_t least = UINT64_MAX;

    snprintf(above, sizeof above, "%s", group);
    for (;;) {
        char *slash = strrchr(above, '/');

        if (snprintf(path, sizeof path, "%s%s/%s", root, above, file) <
            (int)sizeof path) {
            uint64_t limit = limit_read(path);
            least = limit < least ? limit : least;
        }
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* A line of /proc/self/cgroup: "0::/a/b", or "4:cpu,memory:/a/b". */
static uint64_t line_limit(const char *line)
{
    const char *names = strchr(line, ':');
    const char *group = names ? strchr(names + 1, ':') : NULL;

    if (!group)
        return UINT64_MAX;
    if (group == names + 1)
        return host_limit_of("/sys/fs/cgroup", group + 1, "memory.max");
    return strstr(names, "memory")
               ? host_limit_of("/sys/fs/cgroup/memory", group + 1,
                               "memory.limit_in_bytes")
               : UINT64_MAX;
}

int host_limit_cgroup(uint64_t *bytes, struct err *err)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX];

    *bytes = UINT64_MAX;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        uint64_t limit = line_limit(line);
        *bytes = limit < *bytes ? limit : *bytes;
    }
    if (file)
        fclose(file);
    if (*bytes != UINT64_MAX)
        return 0;
    return err_set(err, "--host-memory cgroup: no limit is set for memsim's "
                        "control group (/proc/self/cgroup); give a size, as "
                        "64GiB");
}

uint64_t host_shared_used(void)
{
    struct statvfs st;

    return statvfs("/dev/shm", &st)
               ? 0
               : (uint64_t)(st.f_blocks - st.f_bfree) * st.f_frsize;
}
