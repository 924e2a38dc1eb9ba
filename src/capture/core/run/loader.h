/* SPDX-License-Identifier: Apache-2.0
 * What interposing functions of the C library needs. */
#ifndef MEMSIM_CAPTURE_LOADER_H
#define MEMSIM_CAPTURE_LOADER_H

#include <dlfcn.h>

/* The C library's function that ours stands before. */
#define REAL(name)                                                             \
    ({                                                                         \
        static __typeof__(&name) real_;                                        \
        if (!real_)                                                            \
            real_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                \
        real_;                                                                 \
    })

/* Where our libraries lie; "" where that is not known. */
const char *loader_directory(void);

#endif
