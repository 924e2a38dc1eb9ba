/* SPDX-License-Identifier: Apache-2.0
 * What nvcc's host code calls: registration when a library loads, then the
 * launch of a kernel by the address of its host stub. */
#include <stdbool.h>

#include "capture/core/base/handle.h"
#include "capture/core/work/kernel.h"
#include "capture/core/memory/occupancy.h"
#include "capture/core/run/activity.h"
#include "capture/cudart/cudart.h"
#include "capture/cudart/launch.h"

/* crt/host_runtime.h declares these for C++ only. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
char __cudaInitModule(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, void *tid,
                            void *bid, void *block, void *grid, int *warps);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       cudaStream_t *stream);
cudaError_t __cudaGetKernel(void **kernel, const void *host);
cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block,
                               void **arguments, size_t shared,
                               cudaStream_t stream);

#define CONFIGURATIONS_MAX 16

static _Thread_local struct configuration {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configurations[CONFIGURATIONS_MAX];
static _Thread_local unsigned depth;

void **__cudaRegisterFatBinary(void *binary)
{
    static void *none;

    return binary ? binary : &none; /* the handle: it says which code */
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

char __cudaInitModule(void **handle)
{
    (void)handle;
    return 1;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, void *tid,
                            void *bid, void *block, void *grid, int *warps)
{
    (void)device, (void)thread_limit, (void)tid, (void)bid;
    (void)block, (void)grid, (void)warps;
    memsim_kernel_register(host, name, handle);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     cudaStream_t stream)
{
    if (depth == CONFIGURATIONS_MAX)
        return 1;
    configurations[depth++] =
        (struct configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       cudaStream_t *stream)
{
    if (!depth)
        return cudart_result(cudaErrorMissingConfiguration);
    const struct configuration *c = &configurations[--depth];
    *grid = c->grid;
    *block = c->block;
    *shared = c->shared;
    *stream = c->stream;
    return cudaSuccess;
}

static int kernel_start(const struct kernel *kernel,
                        const struct kernel_launch *l)
{
    return kernel ? memsim_kernel_launch(kernel, l)
                  : (int)cudaErrorInvalidDeviceFunction;
}

static int launch_cooperative(const struct kernel *kernel,
                              const struct kernel_launch *l)
{
    int rc = memsim_kernel_cooperative(l);

    return rc ? rc : kernel_start(kernel, l);
}

struct kernel *cudart_kernel(const void *host)
{
    struct kernel *kernel = memsim_kernel_get(host);

    return kernel ? kernel : memsim_kernel_of_handle(host);
}

cudaError_t __cudaGetKernel(void **kernel, const void *host)
{
    *kernel = memsim_kernel_get(host);
    return cudart_result(*kernel ? CORE_OK
                                 : (int)cudaErrorInvalidDeviceFunction);
}

cudaError_t __cudaLaunchKernel(void *kernel, dim3 grid, dim3 block,
                               void **arguments, size_t shared,
                               cudaStream_t stream)
{
    const struct kernel_launch l =
        cudart_launch(grid, block, arguments, shared, stream);

    return cudart_result(kernel_start(memsim_kernel_of_handle(kernel), &l));
}

cudaError_t cudaLaunchKernel(const void *host, dim3 grid, dim3 block,
                             void **arguments, size_t shared,
                             cudaStream_t stream)
{
    const struct kernel_launch l =
        cudart_launch(grid, block, arguments, shared, stream);

    return cudart_result(kernel_start(cudart_kernel(host), &l));
}

cudaError_t cudaLaunchCooperativeKernel(const void *host, dim3 grid, dim3 block,
                                        void **arguments, size_t shared,
                                        cudaStream_t stream)
{
    const struct kernel_launch l =
        cudart_launch(grid, block, arguments, shared, stream);

    ACTIVITY_API(COOPERATIVE);
    return cudart_result(launch_cooperative(cudart_kernel(host), &l));
}

static bool is_cooperative(const cudaLaunchConfig_t *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            return config->attrs[i].val.cooperative;
    return false;
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                const void *host, void **arguments)
{
    NEED(config);

    const struct kernel_launch l =
        cudart_launch(config->gridDim, config->blockDim, arguments,
                    config->dynamicSmemBytes, config->stream);
    const struct kernel *kernel = cudart_kernel(host);

    ACTIVITY_API(LAUNCH_EX);
    return cudart_result(is_cooperative(config) ? launch_cooperative(kernel, &l)
                                                : kernel_start(kernel, &l));
}

/* The code that a GPU of such a capability runs: PyTorch's wheels are built
 * for these (TORCH_CUDA_ARCH_LIST in its .ci/manywheel/build_cuda.sh), and
 * 8.9 runs that of 8.6. CUB looks the version up among those it was compiled
 * for, and refuses any other (cub/util_device.cuh, ChainedPolicy). */
static int code_version(const struct gpu *gpu)
{
    static const int built[] = {120, 100, 90, 86, 80, 75, 70, 60};
    int version = (int)(gpu->capability_major * 10 + gpu->capability_minor);

    for (size_t i = 0; i < sizeof built / sizeof *built; i++)
        if (built[i] <= version)
            return built[i];
    return version;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a,
                                  const void *host)
{
    const struct gpu *gpu = memsim_device_gpu();
    const struct kernel *kernel = cudart_kernel(host);
    int version = code_version(gpu);

    if (!kernel)
        return cudart_result(cudaErrorInvalidDeviceFunction);
    if (kernel->lacks_code)
        return cudart_result(cudaErrorNoKernelImageForDevice);
    *a = (struct cudaFuncAttributes){
        .maxThreadsPerBlock = (int)gpu->max_threads_per_block,
        .numRegs = OCCUPANCY_REGISTERS,
        .ptxVersion = version,
        .binaryVersion = version,
        .maxDynamicSharedSizeBytes =
            (int)cudart_kernel(host)->shared_limit_bytes,
    };
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute what,
                                 int value)
{
    struct kernel *kernel = cudart_kernel(host);

    if (!kernel)
        return cudart_result(cudaErrorInvalidDeviceFunction);
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize)
        return cudaSuccess;
    return cudart_result(memsim_kernel_allow_shared(kernel, value));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel,
                                            enum cudaFuncAttribute what,
                                            int value, int device)
{
    (void)device;
    return cudaFuncSetAttribute(kernel, what, value);
}

cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config)
{
    (void)config;
    return cudaFuncSetAttribute(host, cudaFuncAttributeMax, 0);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *host, int threads, size_t shared,
    unsigned int flags)
{
    (void)host;
    (void)flags;
    return cudart_result(
        memsim_occupancy(threads, OCCUPANCY_REGISTERS, shared, blocks));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *host,
                                                          int threads,
                                                          size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, host, threads, shared, 0);
}
