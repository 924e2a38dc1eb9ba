/* SPDX-License-Identifier: Apache-2.0
 * The C library's heap, of all threads. A look walks over all that is free. */
#ifndef MEMSIM_CAPTURE_CORE_RUN_HOST_HEAP_H
#define MEMSIM_CAPTURE_CORE_RUN_HOST_HEAP_H

#include <stdint.h>

struct host_heap {
    uint64_t used_bytes; /* mapped blocks as well */
    uint64_t free_bytes; /* that it keeps */
};

/* Zeros before glibc 2.33, which does not say. */
struct host_heap host_heap_look(void);

#endif
