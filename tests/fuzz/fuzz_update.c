/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer on `commfit --update FIT --from FILE': both in one input, a NUL
 * between them. What is written must be a fit. */
#include "commfit/update.h"
#include "fits/fit_read.h"
#include "fuzz/scratch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(int condition)
{
    if (!condition)
        abort();
}

/* PATH names SIZE bytes of DATA until the result is closed. */
static int file_of(const uint8_t *data, size_t size, char path[64])
{
    int fd = memfd_create("update", 0);

    demand(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void check_written(const char *path)
{
    struct err err = {""};
    struct fit fit;

    demand(!fit_load(path, &fit, &err));
    fit_fini(&fit);
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    char fit[64], from[64], output[64];
    struct err err = {""};
    static FILE *nowhere;

    if (!end)
        return 0;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    size_t length = (size_t)(end - data);
    int fit_fd = file_of(data, length, fit);
    int from_fd = file_of(end + 1, size - length - 1, from);
    snprintf(output, sizeof output, "%s/memsim-fuzz-update.%d",
             fuzz_scratch(), (int)getpid());
    if (update_file(fit, from, output, nowhere, &err))
        demand(err.text[0]);
    else
        check_written(output);
    close(fit_fd);
    close(from_fd);
    return 0;
}
