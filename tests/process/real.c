/* SPDX-License-Identifier: Apache-2.0
 * A little of everything that a program gives a GPU, by the runtime and by the
 * driver; or what HOW says. For tests/process/run_real. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* nvcc's host code */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFunction(void **handle, const char *host, char *device,
                            const char *name, int thread_limit, void *tid,
                            void *bid, void *block, void *grid, int *warps);

#define MIB   (1ul << 20)
#define STEPS 20

static char stub;
static const dim3 grid = {64, 2, 1}, block = {256, 1, 1};

static void check(int rc, const char *what)
{
    if (rc) {
        printf("%s: %d\n", what, rc);
        exit(1);
    }
}
#define CHECK(call) check((int)(call), #call)

static void by_runtime(void)
{
    cudaStream_t stream;
    cudaEvent_t event;
    char *device, *host;
    void *arguments[] = {&device};

    CHECK(cudaFree(NULL));
    CHECK(cudaMalloc((void **)&device, 64 * MIB));
    CHECK(cudaMallocHost((void **)&host, 64 * MIB));
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    for (int i = 0; i < STEPS; i++) {
        CHECK(cudaMemcpyAsync(device, host, 64 * MIB, cudaMemcpyHostToDevice,
                              stream));
        CHECK(cudaLaunchKernel(&stub, grid, block, arguments, 1024, stream));
        CHECK(cudaEventRecord(event, stream));
        CHECK(cudaStreamWaitEvent(0, event, 0));
        CHECK(cudaMemsetAsync(device, 7, 32 * MIB, 0));
        CHECK(cudaLaunchKernel(&stub, grid, block, arguments, 0, 0));
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaMemcpy(host, device, MIB, cudaMemcpyDeviceToHost));
    CHECK(cudaEventSynchronize(event));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(device));
}

/* As a library does that has the runtime linked into it: all functions by
 * cuGetProcAddress. */
static void *driver(const char *name)
{
    void *function = NULL;

    CHECK(cuGetProcAddress(name, &function, 13000, 0, NULL));
    return function;
}
#define DRIVER(name) ((__typeof__(&name))driver(#name))

static void by_driver(void)
{
    CUstream stream;
    CUdeviceptr p;

    CHECK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(DRIVER(cuMemAlloc)(&p, 16 * MIB));
    CHECK(DRIVER(cuMemsetD8Async)(p, 1, 16 * MIB, stream));
    CHECK(DRIVER(cuStreamSynchronize)(stream));
    CHECK(DRIVER(cuMemFree)(p));
    CHECK(DRIVER(cuStreamDestroy)(stream));
}

/* As much memory as there is. */
static void fill(void)
{
    size_t available, total, taken = 0;
    void *p;

    CHECK(cudaMemGetInfo(&available, &total));
    while (!cudaMalloc(&p, 256 * MIB))
        taken += 256;
    printf("total %zu MiB, taken %zu MiB\n", total / MIB, taken);
}

static void take(size_t bytes)
{
    void *p;

    CHECK(cudaMalloc(&p, bytes));
}

static size_t available(void)
{
    size_t bytes, total;

    CHECK(cudaMemGetInfo(&bytes, &total));
    return bytes;
}

/* Another process takes 2 GiB of the GPU while this one has it. */
static void beside(const char *program)
{
    char command[4096];

    take(64 * MIB);
    size_t before = available();
    snprintf(command, sizeof command, "exec %s hold", program);
    FILE *other = popen(command, "w");
    while (other && available() > before - 2048 * MIB)
        usleep(10000);
    take(64 * MIB);
    puts("beside");
    pclose(other);
}

/* Until the other one ends its input. */
static void hold(void)
{
    take(2048 * MIB);
    while (getchar() != EOF)
        ;
}

static void CUPTIAPI request(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *buffer = malloc(*bytes = MIB);
    *most = 0;
}

static unsigned own_records;

static void CUPTIAPI complete(CUcontext context, uint32_t stream,
                              uint8_t *buffer, size_t bytes, size_t valid)
{
    CUpti_Activity *record = NULL;

    (void)context, (void)stream, (void)bytes;
    while (!cuptiActivityGetNextRecord(buffer, valid, &record))
        own_records++;
    free(buffer);
}

/* As torch.profiler does. */
static void profile(void)
{
    by_runtime();
    CHECK(cuptiActivityRegisterCallbacks(request, complete));
    CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET));
    by_runtime();
    CHECK(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMSET));
    CHECK(cuptiActivityFlushAll(1));
    printf("own records: %u\n", own_records);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "work";

    __cudaRegisterFunction(__cudaRegisterFatBinary(NULL), &stub, NULL,
                           "_Z4workPf", -1, NULL, NULL, NULL, NULL, NULL);
    if (!strcmp(how, "fill")) {
        fill();
    } else if (!strcmp(how, "beside")) {
        beside(argv[0]);
    } else if (!strcmp(how, "hold")) {
        hold();
    } else if (!strcmp(how, "profile")) {
        profile();
    } else {
        by_runtime();
        by_driver();
        puts("done");
    }
    return !strcmp(how, "status") ? 7 : 0;
}
