/* SPDX-License-Identifier: Apache-2.0
 * What interposing functions of the C library needs. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_LOADER_H
#define MEMSIM_CAPTURE_CORE_RUN_LOADER_H

#include <dlfcn.h>

/* The C library's function that ours stands before. */
#define REAL(name)                                                             \
    ({                                                                         \
        static __typeof__(&name) real_;                                        \
        if (!real_)                                                            \
            real_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                \
        real_;                                                                 \
    })

/* Set by a folder above: the file that stands in for PATH, in ROOM of PATH_MAX
 * bytes, or PATH itself; NULL with errno where there is none. */
extern const char *(*loader_stand_in)(const char *path, char *room);

/* What is to be loaded or executed for PATH. */
const char *loader_file(const char *path, char *room);

/* Where our libraries lie; "" where that is not known. */
const char *loader_directory(void);

#endif
