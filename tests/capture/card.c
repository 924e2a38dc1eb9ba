/* SPDX-License-Identifier: Apache-2.0
 * What a GPU answers about itself: attributes, properties, limits. */
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "answers.h"
#include "check.h"

#define ATTRIBUTES 147 /* CUDA 13.0's */

TEST(attributes_are_answered)
{
    int known = 0;

    CHECK(!cuInit(0));
    for (int i = 1; i <= ATTRIBUTES; i++) {
        int value = 0;

        if (cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0))
            continue;
        answer(value, "attribute %d", i);
        known++;
    }
    CHECK(known > 100);
}

TEST(properties_agree_with_memory)
{
    struct cudaDeviceProp p;
    size_t available, total;

    CHECK(!cudaGetDeviceProperties(&p, 0));
    CHECK(!cudaMemGetInfo(&available, &total));
    CHECK_UINT(p.totalGlobalMem, total);
    answer((int64_t)p.totalGlobalMem, "property totalGlobalMem");
    answer(p.l2CacheSize, "property l2CacheSize");
    answer(p.memoryBusWidth, "property memoryBusWidth");
    answer(p.multiProcessorCount, "property multiProcessorCount");
    answer(p.persistingL2CacheMaxSize, "property persistingL2CacheMaxSize");
}

TEST(limits_have_their_first_values)
{
    for (int i = 0; i <= cudaLimitPersistingL2CacheSize; i++) {
        size_t value = 0;

        CHECK(!cudaDeviceGetLimit(&value, (enum cudaLimit)i));
        answer((int64_t)value, "limit %d", i);
    }
}
