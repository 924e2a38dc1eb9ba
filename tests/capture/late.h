/* SPDX-License-Identifier: Apache-2.0
 * Functions of libraries that a test is not linked with, by name:
 *     #define cufftDestroy LATE("libcufft.so.12", cufftDestroy)
 * memsim run puts ours in the place of the library that is asked for. */
#ifndef MEMSIM_TESTS_LATE_H
#define MEMSIM_TESTS_LATE_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *late(const char *library, const char *function)
{
    void *handle = dlopen(library, RTLD_NOW);
    void *found = handle ? dlsym(handle, function) : NULL;

    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

#define LATE(library, function)                                                \
    ((__typeof__(&(function)))late(library, #function))

#endif
