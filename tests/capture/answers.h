/* SPDX-License-Identifier: Apache-2.0
 * For programs that run on a GPU, too (make conformance): whether this is one,
 * and the answers that tools/conformance-diff compares. */
#ifndef MEMSIM_TESTS_ANSWERS_H
#define MEMSIM_TESTS_ANSWERS_H

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* True with NVIDIA's driver: undefined use, which crashes there, is left out,
 * and so are records, which only memsim makes. $MEMSIM_AS_REAL makes it so, for
 * tests of what a GPU would be asked. */
static inline bool is_real(void)
{
    return getenv("MEMSIM_AS_REAL") ||
           !dlsym(RTLD_DEFAULT, "memsim_device_count");
}

/* Skips the test on a GPU, which has none of WHAT, or where it is undefined. */
#define need_fake(what)                                                        \
    do {                                                                       \
        if (is_real())                                                         \
            SKIP("not on a GPU: %s", what);                                    \
    } while (0)

/* GPU 0's compute capability as code is compiled for it: 90 is 9.0. */
static inline int gpu_capability(void)
{
    int major = 0, minor = 0;

    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
    return 10 * major + minor;
}

/* Skips the test on GPUs of other capabilities than FIRST to LAST: WHAT is known
 * or there only on these. */
#define need_capability(first, last, what)                                     \
    do {                                                                       \
        int has_ = gpu_capability();                                           \
        if (has_ < (first) || has_ > (last))                                   \
            SKIP("compute capability %d: %s", has_, what);                     \
    } while (0)

#define HOPPER 90 /* of which sizes were measured */

/* Appends NAME (printf-like, without quotes) with VALUE to the file
 * $MEMSIM_ANSWERS, a JSON object a line: one write, as tests fork. */
__attribute__((format(printf, 2, 3))) static inline void
answer(int64_t value, const char *name, ...)
{
    const char *path = getenv("MEMSIM_ANSWERS");
    char text[200], line[260];
    va_list list;

    va_start(list, name);
    vsnprintf(text, sizeof text, name, list);
    va_end(list);
    int length = snprintf(line, sizeof line,
                          "{\"name\": \"%s\", \"value\": %" PRId64 "}\n", text,
                          value);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0666) : -1;
    if (fd < 0)
        return;
    if (write(fd, line, (size_t)length) != length)
        perror(path);
    close(fd);
}

/* CALL, whose code on a GPU is not WANT, memsim's: that much a log says, which
 * has no codes ("excluded" in data/conformance). */
#define ANSWER_CODE(call, want, name)                                          \
    do {                                                                       \
        int code_ = (int)(call);                                               \
        answer(code_, "code of %s", name);                                     \
        if (!is_real())                                                        \
            CHECK_CODE(code_, want);                                           \
    } while (0)

#endif
