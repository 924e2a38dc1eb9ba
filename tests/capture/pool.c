/* SPDX-License-Identifier: Apache-2.0
 * Stream-ordered allocation: what a pool holds, and when it gives it back. */
#include <cuda_runtime_api.h>

#include "answers.h"
#include "check.h"

#define MIB (1ul << 20)

static size_t free_bytes(void)
{
    size_t available, total;

    return cudaMemGetInfo(&available, &total) ? 0 : available;
}

static cudaMemPool_t default_pool(void)
{
    cudaMemPool_t pool = NULL;

    CHECK(!cudaDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static uint64_t get(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
    uint64_t value = 12345;

    CHECK(!cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

TEST(a_pool_gives_back_when_waited_for)
{
    cudaMemPool_t pool = default_pool();
    size_t before = free_bytes();
    void *p;

    CHECK(!cudaMallocAsync(&p, 1000, 0));
    CHECK_UINT(before - free_bytes(), 32 * MIB);
    CHECK_UINT(get(pool, cudaMemPoolAttrUsedMemCurrent), 1000);
    CHECK_UINT(get(pool, cudaMemPoolAttrReservedMemCurrent), 32 * MIB);
    CHECK(!cudaFreeAsync(p, 0));
    CHECK_UINT(get(pool, cudaMemPoolAttrUsedMemCurrent), 0);
    CHECK_UINT(get(pool, cudaMemPoolAttrUsedMemHigh), 1000);
    CHECK_UINT(before - free_bytes(), 32 * MIB);
    CHECK(!cudaStreamSynchronize(0));
    CHECK_UINT(free_bytes(), before);
    CHECK_UINT(get(pool, cudaMemPoolAttrReservedMemCurrent), 0);
}

TEST(the_threshold_keeps_it)
{
    cudaMemPool_t pool = default_pool();
    uint64_t all = UINT64_MAX, zero = 0;
    size_t before = free_bytes();
    void *p, *q;

    CHECK(
        !cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    CHECK(!cudaMallocAsync(&p, 100 * MIB, 0));
    CHECK_UINT(before - free_bytes(), 128 * MIB);
    CHECK(!cudaFreeAsync(p, 0));
    CHECK(!cudaDeviceSynchronize());
    CHECK_UINT(before - free_bytes(), 128 * MIB);
    CHECK(!cudaMallocAsync(&q, 50 * MIB, 0));
    CHECK(p == q);
    CHECK(!cudaFreeAsync(q, 0));
    CHECK(!cudaMemPoolTrimTo(pool, 0));
    CHECK_UINT(before - free_bytes(), 128 * MIB); /* freed, not waited for */
    CHECK(!cudaDeviceSynchronize());
    CHECK(!cudaMemPoolTrimTo(pool, 0));
    CHECK_UINT(free_bytes(), before);
    CHECK(
        !cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &zero));
    CHECK_UINT(get(pool, cudaMemPoolAttrReservedMemHigh), 0);
}

TEST(ranges_split_and_merge)
{
    cudaMemPool_t pool = default_pool();
    char *p[4];

    for (int i = 0; i < 4; i++)
        CHECK(!cudaMallocAsync((void **)&p[i], 8 * MIB, 0));
    CHECK_UINT(get(pool, cudaMemPoolAttrReservedMemCurrent), 32 * MIB);
    CHECK(p[1] == p[0] + 8 * MIB && p[3] == p[0] + 24 * MIB);
    CHECK(!cudaFreeAsync(p[2], 0));
    CHECK(!cudaFreeAsync(p[1], 0));
    CHECK(!cudaMallocAsync((void **)&p[1], 16 * MIB, 0));
    CHECK(p[1] == p[0] + 8 * MIB);
    CHECK_UINT(get(pool, cudaMemPoolAttrReservedMemCurrent), 32 * MIB);
}

TEST(own_pools_and_their_limits)
{
    const struct cudaMemPoolProps p = {
        .allocType = cudaMemAllocationTypePinned,
        .location = {.type = cudaMemLocationTypeDevice},
        .maxSize = 64 * MIB,
    };
    cudaMemPool_t pool, current;
    size_t before;
    void *a, *b;

    CHECK(!cudaMemPoolCreate(&pool, &p));
    before = free_bytes();
    CHECK(!cudaMallocFromPoolAsync(&a, 40 * MIB, pool, 0));
    CHECK_CODE(cudaMallocFromPoolAsync(&b, 40 * MIB, pool, 0),
               cudaErrorMemoryAllocation);
    CHECK(!cudaDeviceSetMemPool(0, pool));
    CHECK(!cudaDeviceGetMemPool(&current, 0));
    CHECK(current == pool);
    CHECK(!cudaMemPoolDestroy(pool));
    CHECK(!cudaDeviceGetMemPool(&current, 0));
    CHECK(current == default_pool());
    CHECK_CODE(cudaMemPoolDestroy(pool), cudaErrorInvalidValue);
    CHECK(before - free_bytes() >= 40 * MIB); /* in use after all */
    CHECK(!cudaFreeAsync(a, 0));
    CHECK(free_bytes() < before);
    CHECK(!cudaStreamSynchronize(0));
    CHECK_UINT(free_bytes(), before);
    CHECK_CODE(cudaMemPoolDestroy(default_pool()), cudaErrorInvalidValue);
}

TEST(odd_requests)
{
    void *p = (void *)1, *q;

    CHECK(!cudaMallocAsync(&p, 0, 0));
    CHECK(!p);
    CHECK(!cudaFreeAsync(NULL, 0));
    CHECK_CODE(cudaMallocAsync(&p, 1ul << 40, 0), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaMallocAsync(&p, SIZE_MAX, 0), cudaErrorMemoryAllocation);
    CHECK(!cudaMalloc(&q, 100));
    ANSWER_CODE(cudaFreeAsync(q, 0), cudaErrorInvalidValue,
                "cudaMalloc's memory freed on a stream");
    CHECK(!cudaMallocAsync(&p, 100, 0));
    CHECK(!cudaFree(p)); /* allowed, and waits */
    CHECK_CODE(cudaFree(p), cudaErrorInvalidValue);
}
