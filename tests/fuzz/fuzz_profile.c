/* SPDX-License-Identifier: Apache-2.0
 * Profiler traces: any bytes, plain, gzipped or a database of Nsight Systems,
 * read and linked. */
#include "memsim/import/profile.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    static int fd = -1;
    static char path[64];
    struct profile p;
    struct err err = {0};

    if (fd < 0) {
        fd = memfd_create("profile", 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
        return 0;
    if (profile_read(&p, path, 0, &err) == 0)
        profile_link(&p);
    profile_fini(&p);
    return 0;
}
