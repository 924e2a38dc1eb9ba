/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's memory on the host: two functions of libc10.so's, through whose PLT
 * it calls them (c10/core/impl/alloc_cpu.cpp). */
#include <stdlib.h>

#include "capture/core/memory/values_return.h"
#include "capture/core/run/host_use.h"
#include "capture/core/torch/torch_function.h"

#define ALLOC_CPU "_ZN3c109alloc_cpuEm"
#define FREE_CPU  "_ZN3c108free_cpuEPv"

/* Throws where there is no memory. */
void *torch_alloc_cpu(size_t bytes) __asm__(ALLOC_CPU);
CORE_API void *torch_alloc_cpu(size_t bytes)
{
    static void *(*real)(size_t);

    if (!real)
        real = (__typeof__(real))torch_function("libc10.so", ALLOC_CPU);
    void *memory = real(bytes);
    memsim_host_takes(SESSION_HOST_TENSORS, (uint64_t)memory, bytes);
    return memory;
}

void torch_free_cpu(void *memory) __asm__(FREE_CPU);
CORE_API void torch_free_cpu(void *memory)
{
    static void (*real)(void *);

    if (!real)
        real = (__typeof__(real))torch_function("libc10.so", FREE_CPU);
    values_return_end((uint64_t)memory);
    memsim_host_gives((uint64_t)memory);
    if (real)
        real(memory);
    else
        free(memory); /* as it does */
}
