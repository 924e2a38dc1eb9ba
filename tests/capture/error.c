/* SPDX-License-Identifier: Apache-2.0
 * Bugs of programs: as the runtime reports them. */
#include <cuda_runtime_api.h>

#include "check.h"

TEST(errors_stay_until_they_are_asked_for)
{
    void *p;

    CHECK(cudaMalloc(&p, SIZE_MAX) == cudaErrorMemoryAllocation);
    CHECK(!cudaMalloc(&p, 8));
    CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaSuccess);
}

TEST(use_after_destroy)
{
    cudaStream_t stream;
    cudaEvent_t event;
    void *p;

    CHECK(!cudaMalloc(&p, 64));
    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cudaStreamDestroy(stream));
    CHECK(cudaMemsetAsync(p, 0, 4, stream) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamDestroy(stream) == cudaErrorInvalidResourceHandle);
    CHECK(!cudaEventCreate(&event));
    CHECK(!cudaEventDestroy(event));
    CHECK(cudaEventRecord(event, 0) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamWaitEvent(0, event, 0) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventDestroy(event) == cudaErrorInvalidResourceHandle);
}

TEST(memory_after_free)
{
    char host[64];
    void *p;

    CHECK(!cudaMalloc(&p, 64));
    CHECK(!cudaFree(p));
    CHECK(cudaFree(p) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host, p, 64, cudaMemcpyDeviceToHost) ==
          cudaErrorInvalidValue);
    CHECK(cudaMemset(p, 0, 64) == cudaErrorInvalidValue);
    CHECK(cudaFree(host) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host, host, 0, cudaMemcpyHostToHost) == cudaSuccess);
    CHECK(cudaMemcpy(host, host, 1, (enum cudaMemcpyKind)9) ==
          cudaErrorInvalidValue);
}

TEST(peers)
{
    int can = 7;

    CHECK(!cudaDeviceCanAccessPeer(&can, 0, 0));
    CHECK(can == 0);
    CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceEnablePeerAccess(5, 0) == cudaErrorInvalidDevice);
    CHECK(cudaDeviceCanAccessPeer(&can, 0, 1) == cudaErrorInvalidDevice);
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
