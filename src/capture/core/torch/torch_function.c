/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/torch_function.h"

#include <dlfcn.h>
#include <stddef.h>

void *torch_function(const char *library, const char *name)
{
    void *next = dlsym(RTLD_NEXT, name);

    if (next)
        return next;
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? dlsym(handle, name) : NULL;
}
