/* SPDX-License-Identifier: Apache-2.0
 * Dense solvers: workspaces, info codes, what is recorded, what is refused. */
#include <cuda_runtime_api.h>
#include <cusolverDn.h>

#include "check.h"
#include "cudnn_trace.h"
#include "late.h"

#define SOLVER "libcusolver.so.12"
#define cusolverDnCreate LATE(SOLVER, cusolverDnCreate)
#define cusolverDnCreateGesvdjInfo LATE(SOLVER, cusolverDnCreateGesvdjInfo)
#define cusolverDnDestroy LATE(SOLVER, cusolverDnDestroy)
#define cusolverDnDestroyGesvdjInfo LATE(SOLVER, cusolverDnDestroyGesvdjInfo)
#define cusolverDnDgesvd_bufferSize LATE(SOLVER, cusolverDnDgesvd_bufferSize)
#define cusolverDnDgetrf LATE(SOLVER, cusolverDnDgetrf)
#define cusolverDnDormqr_bufferSize LATE(SOLVER, cusolverDnDormqr_bufferSize)
#define cusolverDnGetDeterministicMode \
    LATE(SOLVER, cusolverDnGetDeterministicMode)
#define cusolverDnGetStream LATE(SOLVER, cusolverDnGetStream)
#define cusolverDnSetStream LATE(SOLVER, cusolverDnSetStream)
#define cusolverDnSgeqrf_bufferSize LATE(SOLVER, cusolverDnSgeqrf_bufferSize)
#define cusolverDnSgesvdaStridedBatched \
    LATE(SOLVER, cusolverDnSgesvdaStridedBatched)
#define cusolverDnSgetrf LATE(SOLVER, cusolverDnSgetrf)
#define cusolverDnSpotrfBatched LATE(SOLVER, cusolverDnSpotrfBatched)
#define cusolverDnSpotrf_bufferSize LATE(SOLVER, cusolverDnSpotrf_bufferSize)
#define cusolverDnSsyevd_bufferSize LATE(SOLVER, cusolverDnSsyevd_bufferSize)
#define cusolverDnSsyevjBatched_bufferSize \
    LATE(SOLVER, cusolverDnSsyevjBatched_bufferSize)
#define cusolverDnXgesvdjGetSweeps LATE(SOLVER, cusolverDnXgesvdjGetSweeps)
#define cusolverDnXgesvdjSetMaxSweeps \
    LATE(SOLVER, cusolverDnXgesvdjSetMaxSweeps)
#define cusolverDnXpotrf_bufferSize LATE(SOLVER, cusolverDnXpotrf_bufferSize)
#define cusolverDnZungqr_bufferSize LATE(SOLVER, cusolverDnZungqr_bufferSize)

static cusolverDnHandle_t handle_new(void)
{
    cusolverDnHandle_t handle = NULL;

    CHECK(!cusolverDnCreate(&handle));
    return handle;
}

/* An int on the device that is not 0. */
static int *device_info(int count)
{
    int *info = NULL;

    CHECK(!cudaMalloc((void **)&info, 1024));
    CHECK(!cudaMemset(info, 0xff, (size_t)count * sizeof *info));
    return info;
}

static int info_at(const int *info, int i)
{
    int value = -2;

    CHECK(!cudaMemcpy(&value, info + i, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

TEST(a_handle_remembers_and_ends)
{
    cusolverDnHandle_t handle = handle_new();
    cusolverDeterministicMode_t mode;
    cudaStream_t stream, got;

    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cusolverDnSetStream(handle, stream));
    CHECK(!cusolverDnGetStream(handle, &got));
    CHECK(got == stream);
    CHECK(!cusolverDnGetDeterministicMode(handle, &mode));
    CHECK(mode == CUSOLVER_DETERMINISTIC_RESULTS);
    CHECK(!cusolverDnDestroy(handle));
    CHECK_CODE(cusolverDnDestroy(handle), CUSOLVER_STATUS_NOT_INITIALIZED);
    CHECK_CODE(cusolverDnSetStream(handle, stream),
               CUSOLVER_STATUS_NOT_INITIALIZED);
}

TEST(each_handle_takes_memory_the_first_one_more)
{
    size_t before, after, again, total;

    CHECK(!cudaFree(NULL));
    CHECK(!cudaMemGetInfo(&before, &total));
    cusolverDnHandle_t first = handle_new();
    CHECK(!cudaMemGetInfo(&after, &total));
    handle_new();
    CHECK(!cudaMemGetInfo(&again, &total));
    CHECK_UINT(before - after, 100 << 20);
    CHECK_UINT(after - again, 96 << 20);
    CHECK(!cusolverDnDestroy(first));
    handle_new(); /* takes what the first one left */
    CHECK(!cudaMemGetInfo(&after, &total));
    CHECK_UINT(after, again);
}

/* As an H200 answers. */
TEST(workspaces_are_a_card_s)
{
    cusolverDnHandle_t handle = handle_new();
    int elements = -1;

    CHECK(!cusolverDnSgeqrf_bufferSize(handle, 300, 100, NULL, 300, &elements));
    CHECK_UINT(elements, 786432);
    CHECK(!cusolverDnZungqr_bufferSize(handle, 300, 100, 50, NULL, 300, NULL,
                                       &elements));
    CHECK_UINT(elements, 48032);
    CHECK(!cusolverDnDormqr_bufferSize(handle, CUBLAS_SIDE_RIGHT, CUBLAS_OP_T,
                                       70, 20, 20, NULL, 70, NULL, NULL, 70,
                                       &elements));
    CHECK_UINT(elements, 85632);
    CHECK(!cusolverDnSsyevd_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR,
                                       CUBLAS_FILL_MODE_LOWER, 50, NULL, 50,
                                       NULL, &elements));
    CHECK_UINT(elements, 111499);
    CHECK(!cusolverDnDgesvd_bufferSize(handle, 80, 40, &elements));
    CHECK_UINT(elements, 829152);
    CHECK(!cusolverDnSsyevjBatched_bufferSize(
        handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 8, NULL, 8,
        NULL, &elements, NULL, 10));
    CHECK_UINT(elements, 12078);
}

TEST(a_size_that_nobody_measured_has_a_range)
{
    cusolverDnHandle_t handle = handle_new();
    int elements = -1;

    CHECK(!cusolverDnDgesvd_bufferSize(handle, 80, 40, &elements));
    CHECK_UINT(trace_seen(TRACE_SIZE_RANGE).count, 0);
    CHECK(!cusolverDnDgesvd_bufferSize(handle, 90, 40, &elements));
    struct seen told = trace_seen(TRACE_SIZE_RANGE);
    CHECK_UINT(told.count, 1);
    CHECK_UINT(told.size.bytes, (uint64_t)elements * sizeof(double));
    CHECK_UINT(told.size.least_bytes, 0);
    CHECK_UINT(told.size.most_bytes, 4 * told.size.bytes + (8 << 20));
}

TEST(bytes_follow_the_type)
{
    cusolverDnHandle_t handle = handle_new();
    size_t single, twice, host = 7;

    CHECK(!cusolverDnXpotrf_bufferSize(handle, NULL, CUBLAS_FILL_MODE_LOWER,
                                       999, CUDA_R_32F, NULL, 999, CUDA_R_32F,
                                       &single, &host));
    CHECK(!cusolverDnXpotrf_bufferSize(handle, NULL, CUBLAS_FILL_MODE_LOWER,
                                       999, CUDA_C_64F, NULL, 999, CUDA_C_64F,
                                       &twice, &host));
    CHECK_UINT(twice, 4 * single);

    CHECK(!cusolverDnXpotrf_bufferSize(handle, NULL, CUBLAS_FILL_MODE_LOWER,
                                       1000, CUDA_R_32F, NULL, 1000,
                                       CUDA_R_32F, &single, &host));
    CHECK(!cusolverDnXpotrf_bufferSize(handle, NULL, CUBLAS_FILL_MODE_LOWER,
                                       1000, CUDA_C_64F, NULL, 1000,
                                       CUDA_C_64F, &twice, &host));
    CHECK_UINT(host, 0);
    CHECK_UINT(single, 4224);
    CHECK_UINT(twice, 4224);
    CHECK_CODE(cusolverDnXpotrf_bufferSize(handle, NULL, CUBLAS_FILL_MODE_LOWER,
                                           8, CUDA_R_8I, NULL, 8, CUDA_R_8I,
                                           &single, &host),
               CUSOLVER_STATUS_INVALID_VALUE);
}

TEST(a_factorisation_succeeds_and_is_recorded)
{
    cusolverDnHandle_t handle = handle_new();
    int *info = device_info(1);

    CHECK(!cusolverDnDgetrf(handle, 30, 20, NULL, 30, NULL, NULL, info));
    CHECK_UINT(info_at(info, 0), 0);
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.count, 1);
    CHECK_UINT(seen.call.workspace_bytes,
               64 * 30 * sizeof(double)); /* its workspace */
    CHECK_UINT(seen.call.a, 30);
    CHECK_UINT(seen.call.b, 20);
    CHECK_UINT(seen.call.e, CUDA_R_64F);
}

TEST(every_matrix_of_a_batch_has_its_code)
{
    cusolverDnHandle_t handle = handle_new();
    int *info = device_info(5);

    CHECK(!cusolverDnSpotrfBatched(handle, CUBLAS_FILL_MODE_LOWER, 4, NULL, 4,
                                   info, 4));
    CHECK_UINT(info_at(info, 0), 0);
    CHECK_UINT(info_at(info, 3), 0);
    CHECK(info_at(info, 4) == -1); /* not of the batch */
}

TEST(a_host_side_result_is_set)
{
    cusolverDnHandle_t handle = handle_new();
    double residuals[3] = {9, 9, 9};
    int *info = device_info(3), sweeps = -1;
    gesvdjInfo_t jacobi;

    CHECK(!cusolverDnSgesvdaStridedBatched(
        handle, CUSOLVER_EIG_MODE_VECTOR, 4, 16, 4, NULL, 16, 64, NULL, 4,
        NULL, 16, 64, NULL, 4, 16, NULL, 0, info, residuals, 2));
    CHECK(residuals[0] == 0 && residuals[1] == 0 && residuals[2] == 9);
    CHECK(!cusolverDnCreateGesvdjInfo(&jacobi));
    CHECK(!cusolverDnXgesvdjSetMaxSweeps(jacobi, 10));
    CHECK(!cusolverDnXgesvdjGetSweeps(handle, jacobi, &sweeps));
    CHECK_UINT(sweeps, 1);
    CHECK(!cusolverDnDestroyGesvdjInfo(jacobi));
    CHECK_CODE(cusolverDnXgesvdjSetMaxSweeps(jacobi, 10),
               CUSOLVER_STATUS_INVALID_VALUE);
}

TEST(bad_arguments_are_refused)
{
    cusolverDnHandle_t handle = handle_new();
    int elements = 3, *info = device_info(1);

    CHECK_CODE(cusolverDnSpotrf_bufferSize(NULL, CUBLAS_FILL_MODE_LOWER, 4,
                                           NULL, 4, &elements),
               CUSOLVER_STATUS_NOT_INITIALIZED);
    CHECK_CODE(cusolverDnSpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, -1,
                                           NULL, 4, &elements),
               CUSOLVER_STATUS_INVALID_VALUE);
    CHECK_CODE(cusolverDnSpotrf_bufferSize(handle, CUBLAS_FILL_MODE_LOWER, 8,
                                           NULL, 4, &elements),
               CUSOLVER_STATUS_INVALID_VALUE); /* lda */
    CHECK_CODE(cusolverDnSsyevd_bufferSize(handle, CUSOLVER_EIG_MODE_VECTOR,
                                           CUBLAS_FILL_MODE_LOWER, 50000, NULL,
                                           50000, NULL, &elements),
               CUSOLVER_STATUS_INVALID_VALUE); /* more than an int holds */
    CHECK_UINT(elements, 3);
    CHECK_CODE(cusolverDnSgetrf(handle, 8, 8, NULL, 4, NULL, NULL, info),
               CUSOLVER_STATUS_INVALID_VALUE);
    CHECK(info_at(info, 0) == -1);
}
