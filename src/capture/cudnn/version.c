/* SPDX-License-Identifier: Apache-2.0
 * Which cuDNN this is. torch refuses to start on one that is older than what
 * it was built with (torch/backends/cudnn/__init__.py, _init), and chooses by
 * the version what it asks for, as does cudnn_frontend. So it is the one that
 * the program's torch requires: its wheel says so beside it. Elsewhere, the
 * headers' own. */
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/cudnn/cudnn.h"

#define PATH_BYTES 1024
#define TEXT_READ  (256u << 10) /* METADATA has its requirements at the top */

/* What is compiled for CUDA 12 is cuDNN 8, for 13 is cuDNN 9 (cudnn.api). The
 * former's version numbers are shorter; PyTorch 2.1 to 2.3 need 8.9.2. */
#if MEMSIM_CUDA_MAJOR == 12
#define SERVED_MAJOR   8
#define SERVED_VERSION 8902
#define MAJOR_UNIT     1000
#else
#define SERVED_MAJOR   CUDNN_MAJOR
#define SERVED_VERSION CUDNN_VERSION
#define MAJOR_UNIT     10000
#endif

/* For dl_iterate_phdr: where packages lie, out of the path of libtorch_cuda.so
 * (PACKAGES/torch/lib/libtorch_cuda.so). */
static int packages_find(struct dl_phdr_info *info, size_t size, void *packages)
{
    const char *end = strstr(info->dlpi_name, "/torch/lib/libtorch_cuda.so");

    (void)size;
    if (!end || end - info->dlpi_name >= PATH_BYTES / 2)
        return 0;
    snprintf(packages, PATH_BYTES / 2, "%.*s", (int)(end - info->dlpi_name),
             info->dlpi_name);
    return 1;
}

/* The start of the file at PATH as a string; empty where there is none. */
static void file_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n = 1;

    while (fd >= 0 && used < size - 1 && n > 0) {
        n = read(fd, text + used, size - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    text[used] = '\0';
}

/* "==9.19.0.56" behind the first requirement of a cuDNN, as 91900; 0 where
 * there is none of ours. */
static size_t requirement_parse(const char *text)
{
    const char *line = strstr(text, "Requires-Dist: nvidia-cudnn-cu");
    int major, minor, patch;

    line = line ? strstr(line, "==") : NULL;
    if (!line || sscanf(line, "==%d.%d.%d", &major, &minor, &patch) != 3)
        return 0;
    return major == SERVED_MAJOR
               ? (size_t)(major * MAJOR_UNIT + minor * 100 + patch)
               : 0;
}

/* A wheel's folder is named by its version, with or without the part behind
 * the plus sign that torch/version.py has (2.11.0+cu130). */
static size_t wheel_version(const char *packages, char *text)
{
    char path[PATH_BYTES], version[64];

    snprintf(path, sizeof path, "%s/torch/version.py", packages);
    file_read(path, text, TEXT_READ);
    const char *line = strstr(text, "__version__ = '");
    if (!line || sscanf(line, "__version__ = '%63[^']", version) != 1)
        return 0;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/torch-%s.dist-info/METADATA", packages,
                 version);
        file_read(path, text, TEXT_READ);
        size_t found = requirement_parse(text);
        if (found)
            return found;
        version[strcspn(version, "+")] = '\0';
    }
    return 0;
}

static size_t version_find(void)
{
    static char text[TEXT_READ];
    char packages[PATH_BYTES / 2] = "";
    size_t version = 0;

    if (dl_iterate_phdr(packages_find, packages))
        version = wheel_version(packages, text);
    return version ? version : SERVED_VERSION;
}

/* Asked first by one thread, as torch's initialization is; another would find
 * the same. */
size_t cudnnGetVersion(void)
{
    static size_t version;

    if (!version)
        version = version_find();
    return version;
}

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int *value)
{
    const int version = (int)cudnnGetVersion();
    const int numbers[] = {
        [MAJOR_VERSION] = SERVED_MAJOR,
        [MINOR_VERSION] = version % MAJOR_UNIT / 100,
        [PATCH_LEVEL] = version % 100,
    };

    if (!value || (unsigned)type > PATCH_LEVEL)
        return CUDNN_STATUS_BAD_PARAM;
    *value = numbers[type];
    return CUDNN_STATUS_SUCCESS;
}
