/* SPDX-License-Identifier: Apache-2.0
 * block COUNT: reports COUNT blocks of PyTorch's allocator and their ends, as
 * PyTorch does: bench/block_cost counts the instructions. */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct c10_device {
    int8_t type, index;
};

void report(void *p, int64_t bytes, size_t allocated, size_t reserved,
            struct c10_device device)
    __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1000;
    const struct c10_device gpu = {.type = 1};
    void *memory;

    if (cudaMalloc(&memory, 1 << 20))
        return fputs("no device: run it under memsim run\n", stderr), 1;
    for (long i = 0; i < count; i++) {
        report(memory, 512, 512, 1 << 20, gpu);
        report(memory, -512, 0, 1 << 20, gpu);
    }
    return 0;
}
