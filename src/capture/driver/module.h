/* SPDX-License-Identifier: Apache-2.0
 * Code given to the driver at run time. Modules and libraries are one thing
 * here, and so are a library's kernels and a module's functions. */
#ifndef MEMSIM_CAPTURE_DRIVER_MODULE_H
#define MEMSIM_CAPTURE_DRIVER_MODULE_H

#include <stddef.h>

#include "capture/core/work/kernel.h"
#include "capture/driver/driver.h"

struct module;

struct function {
    struct kernel *kernel;
    struct module *module; /* NULL: the runtime's */
    struct function *next; /* of the module */
    const char *name;
    uint32_t registers;
    uint32_t shared_bytes; /* static; the kernel has the dynamic ones' limit */
};

_Static_assert(offsetof(struct function, kernel) == 0,
               "memsim_kernel_of_handle() reads it there");

/* What a CUfunction or a CUkernel stands for, those that the runtime gives
 * out included; false where it is none. */
bool driver_function(const void *handle, struct function *function);

/* The one that may be changed: NULL for those of the runtime. */
struct function *driver_function_own(const void *handle);

#endif
