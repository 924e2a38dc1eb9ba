/* SPDX-License-Identifier: Apache-2.0
 * Bugs of programs: as the runtime reports them. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "answers.h"
#include "check.h"
#include "ptx.h"

TEST(errors_stay_until_they_are_asked_for)
{
    void *p;

    CHECK_CODE(cudaMalloc(&p, SIZE_MAX), cudaErrorMemoryAllocation);
    CHECK(!cudaMalloc(&p, 8));
    CHECK_CODE(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaGetLastError(), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaGetLastError(), cudaSuccess);
}

TEST(use_after_destroy)
{
    cudaStream_t stream;
    cudaEvent_t event;
    void *p;

    need_fake("handles after their end");
    CHECK(!cudaMalloc(&p, 64));
    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cudaStreamDestroy(stream));
    CHECK_CODE(cudaMemsetAsync(p, 0, 4, stream), cudaErrorContextIsDestroyed);
    CHECK_CODE(cudaStreamDestroy(stream), cudaErrorContextIsDestroyed);
    CHECK(!cudaEventCreate(&event));
    CHECK(!cudaEventDestroy(event));
    CHECK_CODE(cudaEventRecord(event, 0), cudaErrorContextIsDestroyed);
    CHECK_CODE(cudaStreamWaitEvent(0, event, 0), cudaErrorContextIsDestroyed);
    CHECK_CODE(cudaEventDestroy(event), cudaErrorContextIsDestroyed);
}

TEST(memory_after_free)
{
    char host[64];
    void *p;

    CHECK(!cudaMalloc(&p, 64));
    CHECK(!cudaFree(p));
    CHECK_CODE(cudaFree(p), cudaErrorInvalidValue);
    CHECK_CODE(cudaMemcpy(host, p, 64, cudaMemcpyDeviceToHost),
               cudaErrorInvalidValue);
    CHECK_CODE(cudaMemset(p, 0, 64), cudaErrorInvalidValue);
    CHECK_CODE(cudaFree(host), cudaErrorInvalidValue);
    CHECK_CODE(cudaMemcpy(host, host, 0, cudaMemcpyHostToHost), cudaSuccess);
    CHECK_CODE(cudaMemcpy(host, host, 1, (enum cudaMemcpyKind)9),
               cudaErrorInvalidMemcpyDirection);
}

TEST(peers)
{
    int can = 7;

    CHECK(!cudaDeviceCanAccessPeer(&can, 0, 0));
    CHECK(can == 0);
    CHECK_CODE(cudaDeviceEnablePeerAccess(0, 0),
               cudaErrorPeerAccessUnsupported);
    CHECK_CODE(cudaDeviceEnablePeerAccess(5, 0), cudaErrorInvalidDevice);
    CHECK_CODE(cudaDeviceCanAccessPeer(&can, 0, 1), cudaErrorInvalidDevice);
}

TEST(every_code_has_a_text)
{
    CHECK_STR(cudaGetErrorName(cudaErrorStreamCaptureUnjoined),
              "cudaErrorStreamCaptureUnjoined");
    CHECK_STR(cudaGetErrorString(cudaErrorIllegalAddress),
              "an illegal memory access was encountered");
    CHECK_STR(cudaGetErrorString((cudaError_t)98765),
              "unrecognized error code");
}

/* nvcc's host code, by hand: crt/host_runtime.h is for C++ only. */
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, void *tid,
                            void *bid, void *block, void *grid, int *warps);

static const void *fill; /* `__global__ void fill(int *out, int n)' */

/* As nvcc's host code does; a GPU wants its code. */
static void kernel_register(void)
{
    static char stub;

    fill = is_real() ? ptx_kernel(PTX_STORE) : &stub;
    if (!is_real())
        __cudaRegisterFunction(NULL, &stub, NULL, PTX_STORE, -1, NULL, NULL,
                               NULL, NULL, NULL);
}

static struct cudaDeviceProp properties(void)
{
    struct cudaDeviceProp p;

    CHECK(!cudaGetDeviceProperties(&p, 0));
    return p;
}

static cudaError_t launch(dim3 grid, dim3 block, size_t shared, void *out)
{
    int n = 1;
    void *arguments[] = {&out, &n};

    return cudaLaunchKernel(fill, grid, block, arguments, shared, 0);
}

#define ONE ((dim3){1, 1, 1})

static cudaError_t launch_of(uint32_t gx, uint32_t gy, uint32_t bx, uint32_t bz)
{
    return launch((dim3){gx, gy, 1}, (dim3){bx, 1, bz}, 0, NULL);
}

/* Transformer Engine's kernels have the name of PyTorch's, but other arguments:
 * the first is a number. Behind it nothing is read. */
TEST(a_kernel_of_another_library_with_a_known_name)
{
    static char stub;
    need_fake("kernels without code");
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *arguments[] = {pages + page - sizeof(long), pages, pages, pages,
                         pages};

    CHECK(pages != MAP_FAILED);
    mprotect(pages + page, (size_t)page, PROT_NONE);
    __cudaRegisterFunction(
        NULL, &stub, NULL,
        "_Z25multi_tensor_apply_kernelI18TensorListMetadataILi2ELb0EE"
        "N18transformer_engine18multi_tensor_"
        "scale12ScaleFunctorIffEEJfEEvlPViT_"
        "T0_DpT1_",
        -1, NULL, NULL, NULL, NULL, NULL);
    CHECK(!cudaLaunchKernel(&stub, (dim3){4, 1, 1}, (dim3){512, 1, 1},
                            arguments, 0, 0));
    munmap(pages, (size_t)page * 2);
}

TEST(launches_that_are_refused)
{
    kernel_register();
    CHECK_CODE(launch_of(1, 1, 1024, 1), cudaSuccess);
    CHECK_CODE(launch_of(INT32_MAX, 1, 1, 1), cudaSuccess);
    CHECK_CODE(launch_of(0, 1, 1, 1), cudaErrorInvalidConfiguration);
    CHECK_CODE(launch_of(1, 1, 0, 1), cudaErrorInvalidConfiguration);
    CHECK_CODE(launch_of(1, 65536, 1, 1), cudaErrorInvalidConfiguration);
    CHECK_CODE(launch_of(1u << 31, 1, 1, 1), cudaErrorInvalidConfiguration);
    CHECK_CODE(launch_of(1, 1, 1025, 1), cudaErrorInvalidConfiguration);
    CHECK_CODE(launch_of(1, 1, 1, 65), cudaErrorInvalidConfiguration);
    CHECK_CODE(cudaGetLastError(), cudaErrorInvalidConfiguration);
    CHECK_CODE(cudaDeviceSynchronize(), cudaSuccess); /* not sticky */
    if (!is_real())                                   /* an invented function */
        CHECK_CODE(cudaLaunchKernel("", ONE, ONE, NULL, 0, 0),
                   cudaErrorInvalidDeviceFunction);
}

/* What nvcc puts into a program: code of KIND, 1 PTX, 2 for the GPU itself, for
 * two capabilities. */
struct fat_entry {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t numbers[2];
    uint16_t isa[2];
    uint32_t capability;
    uint64_t rest[4], code;
};
struct fat_program {
    struct {
        uint32_t magic, version;
        const void *fatbin, *more;
    } wrapper;
    struct {
        uint32_t magic;
        uint16_t version, header_bytes;
        uint64_t bytes;
        struct fat_entry entries[2];
    } fatbin;
};

void **__cudaRegisterFatBinary(void *binary);

/* A launch of a kernel with such code on an H100. */
static cudaError_t launch_code(uint16_t kind, uint32_t first, uint32_t second)
{
    static char stubs[16];
    static struct fat_program programs[16];
    static unsigned count;
    struct fat_program *p = &programs[count];
    uint32_t capabilities[] = {first, second};
    void *out = NULL, *arguments[] = {&out, &(int){1}};

    p->wrapper.magic = 0x466243b1;
    p->wrapper.fatbin = &p->fatbin;
    p->fatbin.magic = 0xba55ed50;
    p->fatbin.header_bytes = 16;
    p->fatbin.bytes = sizeof p->fatbin.entries;
    for (unsigned i = 0; i < 2; i++)
        p->fatbin.entries[i] = (struct fat_entry){
            .kind = kind,
            .header_bytes = sizeof(struct fat_entry) - 8,
            .bytes = 8,
            .capability = capabilities[i],
        };
    const char *stub = &stubs[count++];
    __cudaRegisterFunction(__cudaRegisterFatBinary(p), stub, NULL, "_Z4fillPii",
                           -1, NULL, NULL, NULL, NULL, NULL);
    struct cudaFuncAttributes a;
    cudaError_t answer = cudaLaunchKernel(stub, ONE, ONE, arguments, 0, 0);
    CHECK(cudaFuncGetAttributes(&a, stub) == answer);
    cudaGetLastError();
    return answer;
}

TEST(a_kernel_runs_if_its_code_is_for_the_gpu)
{
    need_fake("code without instructions");
    need_capability(HOPPER, HOPPER, "the codes below");
    CHECK_CODE(launch_code(2, 80, 90), cudaSuccess);
    CHECK_CODE(launch_code(2, 90, 75), cudaSuccess);
    CHECK_CODE(launch_code(2, 75, 89), cudaErrorNoKernelImageForDevice);
    CHECK_CODE(launch_code(2, 91, 100), cudaErrorNoKernelImageForDevice);
    CHECK_CODE(launch_code(1, 100, 75),
               cudaSuccess); /* compiled by the driver */
    CHECK_CODE(launch_code(1, 100, 120), cudaErrorNoKernelImageForDevice);
    CHECK_CODE(launch_code(7, 100, 120), cudaSuccess); /* what kind is that? */
    CHECK_STR(cudaGetErrorString(cudaErrorNoKernelImageForDevice),
              "no kernel image is available for execution on the device");
    CHECK_CODE(cudaDeviceSynchronize(), cudaSuccess); /* not sticky */
}

TEST(shared_memory_has_to_be_asked_for)
{
    struct cudaFuncAttributes a;
    int most = (int)properties().sharedMemPerBlockOptin;

    kernel_register();
    CHECK_CODE(launch(ONE, ONE, 48 << 10, NULL), cudaSuccess);
    CHECK_CODE(launch(ONE, ONE, (48 << 10) + 1, NULL), cudaErrorInvalidValue);
    CHECK_CODE(launch(ONE, ONE, SIZE_MAX, NULL), cudaErrorInvalidValue);
    CHECK(!cudaFuncSetAttribute(
        fill, cudaFuncAttributeMaxDynamicSharedMemorySize, most));
    CHECK(!cudaFuncGetAttributes(&a, fill));
    CHECK(a.maxDynamicSharedSizeBytes == most);
    CHECK_CODE(launch(ONE, ONE, (size_t)most, NULL), cudaSuccess);
    CHECK_CODE(cudaFuncSetAttribute(
                   fill, cudaFuncAttributeMaxDynamicSharedMemorySize, most + 1),
               cudaErrorInvalidValue);
}

TEST(a_cooperative_grid_runs_at_once)
{
    void *arguments[] = {&(void *){NULL}, &(int){0}};
    struct cudaDeviceProp p = properties();
    unsigned units = (unsigned)p.multiProcessorCount;
    unsigned each = (unsigned)p.maxThreadsPerMultiProcessor / 512;

    kernel_register();
    CHECK_CODE(cudaLaunchCooperativeKernel(fill, (dim3){units, 1, 1},
                                           (dim3){512, 1, 1}, arguments, 0, 0),
               cudaSuccess);
    CHECK_CODE(cudaLaunchCooperativeKernel(fill, (dim3){units * each + 1, 1, 1},
                                           (dim3){512, 1, 1}, arguments, 0, 0),
               cudaErrorCooperativeLaunchTooLarge);
}

/* Every call that needs the context fails from then on; what needs none, and
 * what only reads texts and last errors, goes on. */
static void check_sticky(void *p)
{
    size_t available, total;
    cudaEvent_t event;
    int count, value;
    char host[8];

    CHECK_CODE(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    CHECK_CODE(cudaGetLastError(), cudaErrorIllegalAddress);
    CHECK_CODE(cudaGetLastError(), cudaSuccess);
    CHECK_CODE(cudaMalloc(&p, 8), cudaErrorIllegalAddress);
    CHECK_CODE(cudaFree(p), cudaErrorIllegalAddress);
    CHECK_CODE(cudaMemGetInfo(&available, &total), cudaErrorIllegalAddress);
    CHECK_CODE(cudaMemcpy(host, p, 8, cudaMemcpyDefault),
               cudaErrorIllegalAddress);
    CHECK_CODE(cudaStreamSynchronize(0), cudaErrorIllegalAddress);
    CHECK_CODE(cudaEventCreate(&event), cudaErrorIllegalAddress);
    CHECK_CODE(launch(ONE, ONE, 0, p), cudaErrorIllegalAddress);
    CHECK_CODE(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK_CODE(cudaDeviceReset(), cudaErrorIllegalAddress);
    CHECK_CODE(cudaGetDeviceCount(&count), cudaSuccess);
    CHECK_CODE(cudaGetDevice(&value), cudaSuccess);
    CHECK_CODE(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0),
               cudaSuccess);
}

TEST(a_kernel_given_freed_memory)
{
    void *p, *q;

    kernel_register();
    CHECK(!cudaMalloc(&p, 8 << 20));
    CHECK(!cudaMalloc(&q, 8 << 20));
    CHECK_CODE(launch(ONE, ONE, 0, p), cudaSuccess);
    CHECK(!cudaFree(p));
    if (!is_real()) /* past its end, which a loop does not reach */
        CHECK_CODE(launch(ONE, ONE, 0, (char *)q + (8 << 20)), cudaSuccess);
    CHECK(!cudaDeviceSynchronize());
    CHECK_CODE(launch(ONE, ONE, 0, p), cudaSuccess); /* it fails later */
    check_sticky(q);
}

TEST(blocking_launches_fail_themselves)
{
    void *p;

    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    kernel_register();
    CHECK(!cudaMalloc(&p, 8 << 20));
    CHECK(!cudaFree(p));
    CHECK_CODE(launch(ONE, ONE, 0, p), cudaErrorIllegalAddress);
    CHECK_CODE(cudaGetLastError(), cudaErrorIllegalAddress);
}

/* Small allocations share a page, which stays as long as one of them does. */
TEST(freed_memory_on_a_page_in_use)
{
    void *p, *q;

    kernel_register();
    CHECK(!cudaMalloc(&p, 1024));
    CHECK(!cudaMalloc(&q, 1024));
    CHECK(!cudaFree(p));
    CHECK_CODE(launch(ONE, ONE, 0, p), cudaSuccess);
    CHECK_CODE(cudaDeviceSynchronize(), cudaSuccess);
    CHECK(!cudaMalloc(&p, 1024)); /* there again */
    CHECK_CODE(launch(ONE, ONE, 0, p), cudaSuccess);
    CHECK_CODE(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(bad_addresses_do_not_stick)
{
    char host[64];
    void *p;

    CHECK(!cudaMalloc(&p, 64));
    CHECK_CODE(cudaMemcpy(host, p, 65, cudaMemcpyDeviceToHost),
               cudaErrorInvalidValue);
    CHECK_CODE(cudaMemcpy(host, NULL, 8, cudaMemcpyDeviceToHost),
               cudaErrorInvalidValue);
    CHECK_CODE(cudaFreeHost(p), cudaErrorInvalidValue);
    CHECK_CODE(cudaFreeHost(host), cudaErrorInvalidValue);
    CHECK_CODE(cudaSetDevice(1), cudaErrorInvalidDevice);
    CHECK_CODE(cudaSetDevice(-1), cudaErrorInvalidDevice);
    CHECK_CODE(cudaMemcpy(host, p, 64, cudaMemcpyDeviceToHost), cudaSuccess);
    ANSWER_CODE(cudaMemset(p, 0, SIZE_MAX), cudaErrorInvalidValue,
                "an endless set");
    int code = cudaMemcpy(host, p, 64, cudaMemcpyDeviceToHost);
    answer(code, "code of a copy after an endless set");
    if (!is_real()) /* an H200 refuses it here */
        CHECK_CODE(code, cudaSuccess);
}

static void *last_error_elsewhere(void *seen)
{
    *(cudaError_t *)seen = cudaPeekAtLastError();
    return NULL;
}

TEST(last_errors_are_a_thread_s_own)
{
    cudaError_t seen = cudaErrorUnknown;
    pthread_t thread;
    void *p;

    CHECK_CODE(cudaMalloc(&p, SIZE_MAX), cudaErrorMemoryAllocation);
    CHECK(!pthread_create(&thread, NULL, last_error_elsewhere, &seen));
    CHECK(!pthread_join(thread, NULL));
    CHECK(seen == cudaSuccess);
    CHECK_CODE(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
}

TEST(sizes_at_the_ends)
{
    size_t pitch;
    void *p = (void *)1;

    CHECK_CODE(cudaMalloc(&p, 0), cudaSuccess);
    CHECK(!p);
    CHECK_CODE(cudaFree(NULL), cudaSuccess);
    CHECK_CODE(cudaMalloc(NULL, 8), cudaErrorInvalidValue);
    CHECK_CODE(cudaMalloc(&p, SIZE_MAX - 100), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaMalloc(&p, 1ul << 63), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaMallocAsync(&p, SIZE_MAX, 0), cudaErrorMemoryAllocation);
    CHECK_CODE(cudaMallocManaged(&p, SIZE_MAX, 1), cudaErrorMemoryAllocation);
    ANSWER_CODE(cudaMallocManaged(&p, 0, 1), cudaErrorInvalidValue,
                "no managed memory");
    CHECK_CODE(cudaMallocManaged(&p, 8, 0), cudaErrorInvalidValue);
    CHECK_CODE(cudaHostAlloc(&p, SIZE_MAX, 0), cudaErrorMemoryAllocation);
    ANSWER_CODE(cudaMallocPitch(&p, &pitch, SIZE_MAX - 600, 8),
                cudaErrorInvalidValue, "rows without an end");
    ANSWER_CODE(cudaMallocPitch(&p, &pitch, 1ul << 30, 1ul << 40),
                cudaErrorMemoryAllocation, "too many rows");
}
