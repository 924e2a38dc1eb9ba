/* SPDX-License-Identifier: Apache-2.0
 * Functions: what they need, and their launch. */
#include "capture/core/memory/occupancy.h"
#include "capture/core/run/activity.h"
#include "capture/driver/launch.h"
#include "capture/driver/module.h"

static CUresult attribute_get(int *value, CUfunction_attribute attribute,
                              const void *handle)
{
    const struct gpu *gpu = memsim_device_gpu();
    struct function f;

    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!driver_function(handle, &f))
        return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = (int)gpu->max_threads_per_block;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = (int)f.shared_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = (int)f.registers;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = (int)(gpu->capability_major * 10 + gpu->capability_minor);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = (int)f.kernel->shared_limit_bytes;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        *value = -1; /* no preference */
        return CUDA_SUCCESS;
    default:
        *value = 0; /* constants, local memory, cluster sizes: not known */
        return attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS
                                                 : CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult attribute_set(const void *handle,
                              CUfunction_attribute attribute, int value)
{
    uint32_t most = memsim_device_gpu()->shared_per_block_optin_bytes;
    struct function *own = driver_function_own(handle);
    struct function any;

    if (!driver_function(handle, &any))
        return CUDA_ERROR_INVALID_HANDLE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_SUCCESS;
    if (!own)
        return driver_result(memsim_kernel_allow_shared(any.kernel, value));
    if (value < 0 || own->shared_bytes + (uint32_t)value > most)
        return CUDA_ERROR_INVALID_VALUE;
    own->kernel->shared_limit_bytes = (uint32_t)value;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                            CUfunction function)
{
    return attribute_get(value, attribute, function);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                            int value)
{
    return attribute_set(function, attribute, value);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute,
                              CUkernel kernel, CUdevice device)
{
    (void)device;
    return attribute_get(value, attribute, kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value,
                              CUkernel kernel, CUdevice device)
{
    (void)device;
    return attribute_set(kernel, attribute, value);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    struct function f;

    if (!driver_function(kernel, &f))
        return CUDA_ERROR_INVALID_HANDLE;
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
    struct function f;

    if (!driver_function(kernel, &f) || !f.module)
        return CUDA_ERROR_INVALID_HANDLE;
    *library = (CUlibrary)f.module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction function)
{
    return cuKernelGetLibrary((CUlibrary *)module, (CUkernel)function);
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    struct function f;

    if (!driver_function(function, &f) || !f.name)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = f.name;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    return cuFuncGetName(name, (CUfunction)kernel);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    struct function f;

    if (!driver_function(function, &f))
        return CUDA_ERROR_INVALID_HANDLE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction function)
{
    struct function f;

    return driver_function(function, &f) ? CUDA_SUCCESS
                                         : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult kernel_start(const void *handle, const struct kernel_launch *l)
{
    struct function f;

    NEED(driver_context());
    if (!driver_function(handle, &f))
        return CUDA_ERROR_INVALID_HANDLE;
    if (l->shared_bytes > f.kernel->shared_limit_bytes)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    if (f.registers * threads > memsim_device_gpu()->registers_per_block)
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return driver_result(memsim_kernel_launch(f.kernel, l));
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction function,
                          void **arguments)
{
    const struct kernel_launch l = driver_launch(c, arguments);

    return kernel_start(function, &l);
}

/* EXTRA are packed arguments, of which nothing tells the layout. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function,
                          void **arguments, void **extra)
{
    (void)extra;
    NEED_PLACE(c);
    ACTIVITY_API(DRIVER_EX);
    return launch_ex(c, function, arguments);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x,
                        unsigned int grid_y, unsigned int grid_z,
                        unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes,
                        CUstream stream, void **arguments, void **extra)
{
    const CUlaunchConfig config = {
        .gridDimX = grid_x,
        .gridDimY = grid_y,
        .gridDimZ = grid_z,
        .blockDimX = block_x,
        .blockDimY = block_y,
        .blockDimZ = block_z,
        .sharedMemBytes = shared_bytes,
        .hStream = stream,
    };

    (void)extra;
    ACTIVITY_API(DRIVER);
    return launch_ex(&config, function, arguments);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                   unsigned int grid_y, unsigned int grid_z,
                                   unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z,
                                   unsigned int shared_bytes, CUstream stream,
                                   void **arguments)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                          block_z, shared_bytes, stream, arguments, NULL);
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, CUfunction function, int threads, size_t shared_bytes,
    unsigned int flags)
{
    struct function f;

    (void)flags;
    NEED(driver_context());
    if (!driver_function(function, &f))
        return CUDA_ERROR_INVALID_HANDLE;
    return driver_result(memsim_occupancy(
        threads, f.registers, f.shared_bytes + shared_bytes, blocks));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                     CUfunction function,
                                                     int threads,
                                                     size_t shared_bytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, function, threads, shared_bytes, 0);
}

/* Clusters of up to 8 blocks fit everywhere that there are clusters at all. */
CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction function,
                                      const CUlaunchConfig *config)
{
    NEED_PLACE(clusters);

    int threads =
        (int)(config->blockDimX * config->blockDimY * config->blockDimZ);
    int blocks;

    NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads,
                                                     config->sharedMemBytes));
    *clusters = blocks * (int)memsim_device_gpu()->sm_count / 8;
    return CUDA_SUCCESS;
}

/* The block that keeps most threads of a multiprocessor busy. */
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(
    int *grid, int *block, CUfunction function,
    CUoccupancyB2DSize shared_of_block, size_t shared_bytes, int limit,
    unsigned int flags)
{
    const struct gpu *gpu = memsim_device_gpu();
    int most = (int)gpu->max_threads_per_block, best = 0, blocks;

    if (limit > 0 && limit < most)
        most = limit;
    for (int threads = most; threads > 0; threads -= (int)gpu->warp_size) {
        NEED(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &blocks, function, threads,
            shared_of_block ? shared_of_block(threads) : shared_bytes, flags));
        if (blocks * threads > best) {
            best = blocks * threads;
            *block = threads;
            *grid = blocks * (int)gpu->sm_count;
        }
    }
    return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block,
                                          CUfunction function,
                                          CUoccupancyB2DSize shared_of_block,
                                          size_t shared_bytes, int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid, block, function, shared_of_block, shared_bytes, limit, 0);
}
