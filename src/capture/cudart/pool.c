/* SPDX-License-Identifier: Apache-2.0
 * Stream-ordered allocation, as the runtime has it. */
#include "capture/core/work/mem_pool.h"

#include "capture/core/torch/torch.h"
#include "capture/cudart/cudart.h"

#define POOL(pool) ((uint64_t)(pool))

static cudaError_t allocate_from(void **p, size_t bytes, uint64_t pool,
                                 cudaStream_t stream, bool torch)
{
    uint64_t address;
    int rc =
        p ? memsim_pool_malloc(pool, bytes, STREAM(stream), torch, &address)
          : CORE_INVALID_VALUE;

    if (!rc)
        *p = (void *)address;
    return cudart_result(rc);
}

cudaError_t cudaMallocAsync(void **p, size_t bytes, cudaStream_t stream)
{
    return allocate_from(p, bytes, 0, stream,
                         memsim_torch_pools(__builtin_return_address(0)));
}

cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream)
{
    if (!pool)
        return cudart_result(CORE_INVALID_VALUE);
    return allocate_from(p, bytes, POOL(pool), stream, false);
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    return cudart_result(memsim_pool_free((uint64_t)p, STREAM(stream)));
}

static int location_check(const struct cudaMemLocation *location)
{
    if (location->type != cudaMemLocationTypeDevice)
        return CORE_NOT_SUPPORTED;
    return location->id < 0 || location->id >= memsim_device_count()
               ? CORE_INVALID_VALUE
               : CORE_OK;
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool,
                              const struct cudaMemPoolProps *p)
{
    uint64_t handle;
    int rc = !pool || !p || p->allocType != cudaMemAllocationTypePinned
                 ? CORE_INVALID_VALUE
                 : location_check(&p->location);

    if (!rc)
        rc = memsim_pool_create(p->location.id, p->maxSize, &handle);
    if (!rc)
        *pool = (cudaMemPool_t)handle;
    return cudart_result(rc);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return cudart_result(memsim_pool_destroy(POOL(pool)));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    NEED(pool);

    uint64_t handle;
    int rc = memsim_pool_default(device, &handle);

    if (!rc)
        *pool = (cudaMemPool_t)handle;
    return cudart_result(rc);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    NEED(pool);

    uint64_t handle;
    int rc = memsim_pool_current(device, &handle);

    if (!rc)
        *pool = (cudaMemPool_t)handle;
    return cudart_result(rc);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return cudart_result(memsim_pool_select(device, POOL(pool)));
}

#if MEMSIM_CUDA_MAJOR >= 13
cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool,
                                     struct cudaMemLocation *location,
                                     enum cudaMemAllocationType type)
{
    NEED(pool && location);

    int rc = location_check(location);

    (void)type;
    return rc ? cudart_result(rc)
              : cudaDeviceGetDefaultMemPool(pool, location->id);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool,
                              struct cudaMemLocation *location,
                              enum cudaMemAllocationType type)
{
    NEED(pool && location);

    int rc = location_check(location);

    (void)type;
    return rc ? cudart_result(rc) : cudaDeviceGetMemPool(pool, location->id);
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location,
                              enum cudaMemAllocationType type,
                              cudaMemPool_t pool)
{
    NEED(location);

    int rc = location_check(location);

    (void)type;
    return rc ? cudart_result(rc) : cudaDeviceSetMemPool(location->id, pool);
}
#endif

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    return cudart_result(memsim_pool_trim(POOL(pool), keep_bytes));
}

/* The first three are ints, the others 64-bit words. */
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool,
                                    enum cudaMemPoolAttr attribute, void *value)
{
    NEED(value);

    uint64_t word = attribute <= cudaMemPoolReuseAllowInternalDependencies
                        ? (uint64_t) * (int *)value
                        : *(uint64_t *)value;

    return cudart_result(
        memsim_pool_set(POOL(pool), (enum pool_attribute)attribute, word));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool,
                                    enum cudaMemPoolAttr attribute, void *value)
{
    uint64_t word;
    int rc = memsim_pool_get(POOL(pool), (enum pool_attribute)attribute, &word);

    if (rc)
        return cudart_result(rc);
    if (attribute <= cudaMemPoolReuseAllowInternalDependencies)
        *(int *)value = (int)word;
    else
        *(uint64_t *)value = word;
    return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool,
                                 const struct cudaMemAccessDesc *rights,
                                 size_t count)
{
    int device, rc = memsim_pool_device(POOL(pool), &device);

    for (size_t i = 0; i < count && !rc; i++)
        if (rights[i].location.type != cudaMemLocationTypeDevice ||
            rights[i].location.id >= memsim_device_count())
            rc = CORE_INVALID_DEVICE;
    return cudart_result(rc);
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags,
                                 cudaMemPool_t pool,
                                 struct cudaMemLocation *location)
{
    int device, rc = memsim_pool_device(POOL(pool), &device);

    if (!rc)
        *flags = location->id == device ? cudaMemAccessFlagsProtReadWrite
                                        : cudaMemAccessFlagsProtNone;
    return cudart_result(rc);
}
