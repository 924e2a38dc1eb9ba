/* SPDX-License-Identifier: Apache-2.0
 * The driver: contexts, entry points by name, memory, modules, launches. */
#include <cuda.h>
#include <elf.h>
#include <stddef.h>

#include "answers.h"
#include "check.h"
#include "ptx.h"

#define MIB (1ul << 20)

static CUcontext start(void)
{
    CUcontext context = NULL;

    CHECK(!cuInit(0));
    CHECK(!cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(!cuCtxSetCurrent(context));
    return context;
}

TEST(nothing_works_before_cuinit)
{
    CUdeviceptr p;
    int count;

    CHECK_CODE(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_CODE(cuMemAlloc(&p, 4), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_CODE(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CHECK(!cuInit(0));
    CHECK(!cuDeviceGetCount(&count));
    CHECK(count == 1);
    CHECK_CODE(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(nothing_works_after_the_only_context_is_destroyed)
{
    CUcontext context;
    CUdeviceptr p;

    CHECK(!cuInit(0));
#if CUDA_VERSION >= 13000
    CHECK(!cuCtxCreate(&context, NULL, 0, 0));
#else
    CHECK(!cuCtxCreate(&context, 0, 0));
#endif
    CHECK(!cuMemAlloc(&p, 4));
    CHECK(!cuCtxDestroy(context));
    CHECK_CODE(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_CODE(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(a_primary_context_becomes_active)
{
    CUcontext context, current = (CUcontext)1;
    unsigned flags;
    CUdevice device;
    int active = -1;

    CHECK(!cuInit(0));
    CHECK(!cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active == 0);
    CHECK(!cuCtxGetCurrent(&current));
    CHECK(!current);
    CHECK(!cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(!cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active == 1);
    CHECK(!cuCtxGetCurrent(&current));
    CHECK(!current); /* retained, but not bound */
    CHECK_CODE(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    CHECK(!cuCtxPushCurrent(context));
    CHECK(!cuCtxGetCurrent(&current));
    CHECK(current == context);
    CHECK(!cuCtxGetDevice(&device));
    CHECK(device == 0);
    CHECK(!cuCtxPopCurrent(&current));
    CHECK(current == context);
    CHECK_CODE(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    if (!is_real()) /* an invented one */
        CHECK_CODE(cuCtxSetCurrent((CUcontext)&device),
                   CUDA_ERROR_INVALID_CONTEXT);
}

TEST(devices_tell_what_they_are)
{
    struct cudaDeviceProp p;
    char name[64];
    CUuuid uuid;
    size_t bytes;
    int value;

    start();
    CHECK(!cuDeviceGetName(name, sizeof name, 0));
    CHECK(!cudaGetDeviceProperties(&p, 0));
    CHECK_STR(name, p.name);
    CHECK(!cuDeviceTotalMem(&bytes, 0));
    CHECK_UINT(bytes, p.totalGlobalMem);
    CHECK(!cuDeviceGetAttribute(
        &value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    CHECK(value == p.major);
    CHECK(!cuDeviceGetUuid(&uuid, 0));
    CHECK(!memcmp(&uuid, &p.uuid, sizeof uuid));
    CHECK_CODE(cuDeviceGetName(name, sizeof name, 1),
               CUDA_ERROR_INVALID_DEVICE);
}

static void *entry(const char *name, int version)
{
    CUdriverProcAddressQueryResult result;
    void *function;

    CHECK(!cuGetProcAddress(name, &function, version, 0, &result));
    CHECK((result == CU_GET_PROC_ADDRESS_SUCCESS) == (function != NULL));
    return function;
}

#define V2(name) (void *)name##_v2

TEST(entry_points_follow_the_version)
{
    void *function;

    CHECK(entry("cuInit", 2000) == (void *)cuInit);
    CHECK(entry("cuMemAlloc", 3020) == V2(cuMemAlloc));
    CHECK(entry("cuMemAlloc", 2000) != V2(cuMemAlloc));
    CHECK(entry("cuMemAlloc", 13000) == V2(cuMemAlloc));
    CHECK(entry("cuStreamDestroy", 3020) != V2(cuStreamDestroy));
    CHECK(entry("cuStreamDestroy", 4000) == V2(cuStreamDestroy));
    CHECK(entry("cuGetProcAddress", 12000) == V2(cuGetProcAddress));
    CHECK(entry("cuMemGetAllocationGranularity", 12000) ==
          (void *)cuMemGetAllocationGranularity);
    CHECK(!entry("cuNoSuchThing", 13000));
    ANSWER_CODE(cuGetProcAddress("cuNoSuchThing", &function, 13000, 0, NULL),
                CUDA_ERROR_NOT_FOUND, "a name that there is not");
}

TEST(memory_and_values)
{
    CUdeviceptr p, base;
    unsigned out[4] = {0};
    size_t before, after, total, bytes;

    start();
    CHECK(!cuMemGetInfo(&before, &total));
    CHECK_CODE(cuMemAlloc(&p, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(cuMemAlloc(&p, 1ul << 40), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK(!cuMemAlloc(&p, 3 * MIB));
    CHECK(!cuMemGetInfo(&after, &total));
    CHECK_UINT(before - after, 4 * MIB);
    CHECK(!cuMemGetAddressRange(&base, &bytes, p + 100));
    CHECK(base == p && bytes == 3 * MIB);
    CHECK(!cuMemsetD32(p, 0x01020304, 4));
    CHECK(!cuMemsetD16(p + 4, 0xabcd, 1));
    CHECK(!cuMemsetD8(p + 15, 0xff, 1));
    CHECK(!cuMemcpyDtoH(out, p, sizeof out));
    CHECK(out[0] == 0x01020304 && out[1] == 0x0102abcd);
    CHECK(out[3] == 0xff020304);
    CHECK_CODE(cuMemsetD32(p + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK(!cuMemFree(p));
    CHECK_CODE(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
}

TEST(pointer_attributes)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                   CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    unsigned type = 9;
    size_t bytes = 0;
    void *out[] = {&type, &bytes};
    CUdeviceptr p, back;

    start();
    CHECK(!cuMemAlloc(&p, 1000));
    CHECK(!cuPointerGetAttributes(2, which, out, p + 5));
    CHECK(type == CU_MEMORYTYPE_DEVICE && bytes == 1000);
    CHECK(!cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 p + 5));
    CHECK(back == p + 5);
    CHECK_CODE(cuPointerGetAttribute(&type, which[0], (CUdeviceptr)&type),
               CUDA_ERROR_INVALID_VALUE);
    CHECK(!cuPointerGetAttributes(1, which, out, (CUdeviceptr)&type));
    CHECK(type == 0);
}

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

static const char ptx[] = HEAD ".visible .global .align 4 .b8 table[64];\n"
                               ".visible .entry one(.param .u64 a)\n{ret;}\n"
                               ".visible .entry two()\n{ret;}\n";

TEST(modules_have_the_kernels_of_their_ptx)
{
    CUfunction one, none;
    CUdeviceptr table;
    CUmodule module;
    size_t bytes;
    unsigned count;

    start();
    CHECK_CODE(cuModuleLoadData(&module, "rubbish"), CUDA_ERROR_INVALID_IMAGE);
    CHECK(!cuModuleLoadData(&module, ptx));
    CHECK(!cuModuleGetFunctionCount(&count, module));
    CHECK(count == 2);
    CHECK(!cuModuleGetFunction(&one, module, "one"));
    CHECK_CODE(cuModuleGetFunction(&none, module, "three"),
               CUDA_ERROR_NOT_FOUND);
    CHECK(!cuModuleGetGlobal(&table, &bytes, module, "table"));
    CHECK(bytes == 64 && table);
    CHECK_CODE(cuModuleGetGlobal(&table, &bytes, module, "chair"),
               CUDA_ERROR_NOT_FOUND);
    void *arguments[] = {&table};
    CHECK(!cuLaunchKernel(one, 1, 1, 1, 32, 1, 1, 0, 0, arguments, NULL));
    CHECK(!cuCtxSynchronize());
    CHECK(!cuModuleUnload(module));
    need_fake("handles after their end");
    CHECK_CODE(cuLaunchKernel(one, 1, 1, 1, 32, 1, 1, 0, 0, NULL, NULL),
               CUDA_ERROR_INVALID_HANDLE);
    CHECK_CODE(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
}

TEST(the_linker_makes_a_module_of_its_inputs)
{
    static const char more[] = HEAD ".visible .entry three()\n{ret;}";
    CUlinkState link;
    CUfunction f;
    CUmodule module;
    void *image;
    size_t bytes;

    start();
    CHECK(!cuLinkCreate(0, NULL, NULL, &link));
    CHECK_CODE(cuLinkComplete(link, &image, &bytes), CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(
        cuLinkAddData(link, CU_JIT_INPUT_PTX, "rubbish", 8, "a", 0, NULL, NULL),
        CUDA_ERROR_INVALID_PTX);
    CHECK_CODE(
        cuLinkAddFile(link, CU_JIT_INPUT_LIBRARY, "/nosuch.a", 0, NULL, NULL),
        CUDA_ERROR_FILE_NOT_FOUND);
    if (!is_real()) /* which has no code for a GPU */
        CHECK(!cuLinkAddFile(link, CU_JIT_INPUT_LIBRARY, "/proc/self/exe", 0,
                             NULL, NULL));
    CHECK(!cuLinkAddData(link, CU_JIT_INPUT_PTX, (char *)ptx, sizeof ptx, "a",
                         0, NULL, NULL));
    CHECK(!cuLinkAddData(link, CU_JIT_INPUT_PTX, (char *)more, sizeof more, "b",
                         0, NULL, NULL));
    CHECK(!cuLinkComplete(link, &image, &bytes));
    if (!is_real())
        CHECK(bytes == sizeof ptx + sizeof more);
    CHECK(!cuModuleLoadData(&module, image));
    CHECK(!cuLinkDestroy(link));
    if (!is_real()) /* a handle after its end */
        CHECK_CODE(cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
    CHECK(!cuModuleGetFunction(&f, module, "two"));
    CHECK(!cuModuleGetFunction(&f, module, "three"));
    CHECK(!cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, 0, NULL, NULL));
}

/* A file of whole pages has no room for a NUL in its last one. */
TEST(a_module_file_may_be_of_whole_pages)
{
    char path[] = "/tmp/memsim-ptx-XXXXXX";
    char text[4096];
    CUmodule module;
    CUfunction f;
    int fd = mkstemp(path);

    start();
    memset(text, ' ', sizeof text);
    memcpy(text, ptx, sizeof ptx - 1);
    CHECK(write(fd, text, sizeof text) == sizeof text);
    CHECK(!cuModuleLoad(&module, path));
    CHECK(!cuModuleGetFunction(&f, module, "two"));
    CHECK_CODE(cuModuleLoad(&module, "/nosuch"), CUDA_ERROR_FILE_NOT_FOUND);
    CHECK(!ftruncate(fd, 0));
    CHECK_CODE(cuModuleLoad(&module, path), CUDA_ERROR_INVALID_IMAGE);
    close(fd);
    unlink(path);
}

/* CUDA's documentation of cudaLaunchKernel: what is launched may be a
 * cudaKernel_t, which is a CUkernel. */
TEST(the_runtime_launches_a_librarys_kernel)
{
    const void *store = ptx_kernel(PTX_STORE);
    struct cudaFuncAttributes a;
    int n = 7, most, *p;
    void *arguments[] = {&p, &n};

    CHECK(!cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                  0));
    CHECK(!cudaMalloc((void **)&p, sizeof *p));
    CHECK(!cudaFuncGetAttributes(&a, store));
    CHECK(!cudaLaunchKernel(store, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments,
                            0, 0));
    CHECK(!cudaDeviceSynchronize());
    CHECK(!cudaMemcpy(&n, p, sizeof n, cudaMemcpyDeviceToHost));
    CHECK(n == 7 || getenv("MEMSIM")); /* which does not know the kernel */
    arguments[0] = &(int *){NULL};
    CHECK_CODE(cudaLaunchKernel(store, (dim3){1, 1, 1}, (dim3){1, 1, 1},
                                arguments, (48 << 10) + 1, 0),
               cudaErrorInvalidValue);
    CHECK(!cudaFuncSetAttribute(
        store, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    CHECK(!cudaLaunchKernel(store, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments,
                            (size_t)most, 0));
}

TEST(launches_are_checked)
{
    struct cudaDeviceProp p;
    CUlibrary library;
    CUfunction f;
    CUkernel k;
    int value, blocks;

    start();
    CHECK(!cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(!cuLibraryGetKernel(&k, library, "two"));
    CHECK(!cuKernelGetFunction(&f, k));
    CHECK(!cuLaunchKernel(f, 1, 1, 1, 1024, 1, 1, 48 << 10, 0, NULL, NULL));
    CHECK_CODE(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, 0, NULL, NULL),
               CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, 0, NULL, NULL),
               CUDA_ERROR_INVALID_VALUE);
    CHECK_CODE(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 60 << 10, 0, NULL, NULL),
               CUDA_ERROR_INVALID_VALUE);
    CHECK(!cudaGetDeviceProperties(&p, 0));
    int most = (int)p.sharedMemPerBlockOptin;
    CHECK(!cuFuncSetAttribute(
        f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most));
    CHECK(!cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, (unsigned)most, 0, NULL, NULL));
    CHECK_CODE(cuFuncSetAttribute(
                   f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1 << 20),
               CUDA_ERROR_INVALID_VALUE);
    CHECK(!cuFuncGetAttribute(
        &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
    CHECK(value == most);
    CHECK(!cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
    CHECK(blocks == p.maxThreadsPerMultiProcessor / 256);
}

/* A cubin with one kernel, "big": 128 registers a thread, 1000 shared bytes. */
struct cubin {
    Elf64_Ehdr header;
    Elf64_Shdr sections[4];
    char names[64];
};

static struct cubin cubin_make(void)
{
    struct cubin c = {
        .header = {.e_ident = ELFMAG,
                   .e_shoff = offsetof(struct cubin, sections),
                   .e_shnum = 4,
                   .e_shstrndx = 1},
        .sections = {[1] = {.sh_offset = offsetof(struct cubin, names)},
                     [2] = {.sh_name = 1, .sh_info = 128u << 24},
                     [3] = {.sh_name = 11, .sh_size = 1000}},
    };

    memcpy(c.names, "\0.text.big\0.nv.shared.big", 26);
    return c;
}

TEST(cubins_tell_what_their_kernels_take)
{
    need_fake("code without instructions");
    struct cubin cubin = cubin_make();
    CUmodule module;
    CUfunction f;
    int value;

    start();
    CHECK(!cuModuleLoadData(&module, &cubin));
    CHECK(!cuModuleGetFunction(&f, module, "big"));
    CHECK(!cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
    CHECK(value == 128);
    CHECK(!cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
    CHECK(value == 1000);
    CHECK(!cuLaunchKernel(f, 1, 1, 1, 512, 1, 1, 0, 0, NULL, NULL));
    CHECK_CODE(cuLaunchKernel(f, 1, 1, 1, 1024, 1, 1, 0, 0, NULL, NULL),
               CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

TEST(errors_have_names)
{
    const char *text;

    CHECK(!cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK_STR(text, "CUDA_ERROR_OUT_OF_MEMORY");
    CHECK(!cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK_STR(text, "out of memory");
    CHECK_CODE(cuGetErrorString((CUresult)12345, &text),
               CUDA_ERROR_INVALID_VALUE);
    CHECK(!text);
}
