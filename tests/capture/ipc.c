/* SPDX-License-Identifier: Apache-2.0
 * Memory and events between two processes, which both have contexts. */
#include <cuda_runtime_api.h>

#include "check.h"

#define MIB (1ul << 20)

struct parcel {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
};

/* The other process: allocates, hands over and waits to be told to end. */
static pid_t owner_start(struct parcel *parcel, int *done)
{
    int here[2], there[2];
    void *p;
    cudaEvent_t event;

    CHECK(!pipe(here) && !pipe(there));
    pid_t pid = fork();
    if (!pid) {
        CHECK(!cudaMalloc(&p, 8 * MIB));
        CHECK(!cudaEventCreateWithFlags(&event, cudaEventInterprocess |
                                                    cudaEventDisableTiming));
        CHECK(!cudaIpcGetMemHandle(&parcel->memory, (char *)p + 5 * MIB));
        CHECK(!cudaIpcGetEventHandle(&parcel->event, event));
        CHECK_CODE(cudaIpcOpenMemHandle(&p, parcel->memory, 1),
                   cudaErrorDeviceUninitialized); /* its own */
        CHECK(write(here[1], parcel, sizeof *parcel) == sizeof *parcel);
        close(there[1]);
        CHECK(read(there[0], &pid, 1) == 0);
        _exit(check_failures != 0);
    }
    close(here[1]);
    close(there[0]);
    CHECK(read(here[0], parcel, sizeof *parcel) == sizeof *parcel);
    *done = there[1];
    return pid;
}

static size_t free_bytes(void)
{
    size_t available, total;

    return cudaMemGetInfo(&available, &total) ? 0 : available;
}

TEST(memory_of_another_process)
{
    struct cudaPointerAttributes a;
    struct parcel parcel;
    void *p, *again;
    int done, status;
    pid_t pid = owner_start(&parcel, &done);

    CHECK(!cudaFree(0));
    size_t before = free_bytes();
    CHECK_CODE(cudaIpcOpenMemHandle(&p, parcel.memory, 0),
               cudaErrorInvalidValue);
    CHECK(!cudaIpcOpenMemHandle(&p, parcel.memory, 1));
    CHECK(!cudaIpcOpenMemHandle(&again, parcel.memory, 1));
    CHECK(p == again);
    CHECK_UINT(free_bytes(), before); /* its owner has paid */
    CHECK(!cudaPointerGetAttributes(&a, (char *)p + 8 * MIB - 1));
    CHECK(a.type == cudaMemoryTypeDevice);
    CHECK(!cudaMemset(p, 0, 8 * MIB));
    CHECK_CODE(cudaMemset(p, 0, 8 * MIB + 1), cudaErrorInvalidValue);
    CHECK_CODE(cudaFree(p), cudaErrorInvalidValue);
    CHECK(!cudaIpcCloseMemHandle(p));
    CHECK(!cudaMemset(p, 0, 1)); /* once open still */
    CHECK(!cudaIpcCloseMemHandle(p));
    CHECK_CODE(cudaMemset(p, 0, 1), cudaErrorInvalidValue);
    CHECK_CODE(cudaIpcCloseMemHandle(p), cudaErrorInvalidValue);
    CHECK_UINT(free_bytes(), before);
    close(done);
    waitpid(pid, &status, 0);
    CHECK(status == 0);
}

TEST(events_of_another_process)
{
    struct parcel parcel;
    cudaEvent_t event;
    int done, status;
    pid_t pid = owner_start(&parcel, &done);

    CHECK(!cudaIpcOpenEventHandle(&event, parcel.event));
    CHECK(!cudaStreamWaitEvent(0, event, 0));
    CHECK(!cudaEventSynchronize(event));
    CHECK(!cudaEventDestroy(event));
    close(done);
    waitpid(pid, &status, 0);
    CHECK(status == 0);
}

TEST(rubbish_is_refused)
{
    cudaIpcMemHandle_t handle = {{0}};
    cudaIpcEventHandle_t shared;
    cudaEvent_t event;
    void *p;

    CHECK_CODE(cudaIpcOpenMemHandle(&p, handle, 1), cudaErrorInvalidValue);
    CHECK_CODE(cudaIpcGetMemHandle(&handle, &p), cudaErrorInvalidValue);
    CHECK(!cudaEventCreate(&event));
    CHECK_CODE(cudaIpcGetEventHandle(&shared, event),
               cudaErrorInvalidResourceHandle);
    CHECK_CODE(cudaEventCreateWithFlags(&event, cudaEventInterprocess),
               cudaErrorInvalidValue);
}
