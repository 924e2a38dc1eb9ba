/* SPDX-License-Identifier: Apache-2.0
 * cuBLAS beyond products, cuBLASLt's descriptors, cuFFT, cuRAND, cuFile. */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cufft.h>
#include <cufile.h>
#include <curand.h>
#include <fcntl.h>

#include "answers.h"
#include "check.h"
#include "cudnn_trace.h"
#include "late.h"

#define FFT "libcufft.so.12"
#define cufftDestroy LATE(FFT, cufftDestroy)
#define cufftEstimate1d LATE(FFT, cufftEstimate1d)
#define cufftEstimate2d LATE(FFT, cufftEstimate2d)
#define cufftEstimateMany LATE(FFT, cufftEstimateMany)
#define cufftExecZ2Z LATE(FFT, cufftExecZ2Z)
#define cufftPlan2d LATE(FFT, cufftPlan2d)

/* Device memory of zeros, which stays. */
static void *zeros(size_t bytes)
{
    void *p = NULL;

    CHECK(!cudaMalloc(&p, bytes));
    CHECK(!cudaMemset(p, 0, bytes));
    return p;
}

static cublasHandle_t handle_new(void)
{
    cublasHandle_t handle = NULL;

    CHECK(!cublasCreate(&handle));
    return handle;
}

TEST(info_on_the_host_is_one_code)
{
    need_fake("products of nothing");
    cublasHandle_t handle = handle_new();
    int info[2] = {7, 7};

    CHECK(!cublasSgetrsBatched(handle, CUBLAS_OP_N, 4, 1, NULL, 4, NULL, NULL,
                               4, info, 3));
    CHECK(info[0] == 0 && info[1] == 7);
    info[0] = 7;
    CHECK(!cublasZgeqrfBatched(handle, 4, 4, NULL, 4, NULL, info, 3));
    CHECK(info[0] == 0 && info[1] == 7);
}

TEST(info_on_the_device_is_one_for_each)
{
    need_fake("products of nothing");
    cublasHandle_t handle = handle_new();
    int host[4], *info;

    CHECK(!cudaMalloc((void **)&info, sizeof host));
    CHECK(!cudaMemset(info, 0xff, sizeof host));
    CHECK(!cublasDgetrfBatched(handle, 8, NULL, 8, NULL, info, 3));
    CHECK(!cudaMemcpy(host, info, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(host[0] == 0 && host[2] == 0 && host[3] == -1);
}

TEST(a_matrix_times_a_vector_is_a_product)
{
    cublasHandle_t handle = handle_new();
    float one = 1;

    float *a = zeros(32 * 50 * sizeof *a);

    CHECK_CODE(
        cublasSgemv(handle, CUBLAS_OP_N, 30, 50, &one, a, 8, a, 1, &one, a, 1),
        CUBLAS_STATUS_INVALID_VALUE);
    CHECK(!cublasSgemv(handle, CUBLAS_OP_T, 30, 50, &one, a, 32, a, 1, &one, a,
                       1));
    CHECK(!cudaDeviceSynchronize());
    struct seen seen = trace_seen(TRACE_GEMM);
    CHECK_UINT(seen.count, 1);
    CHECK_UINT(seen.gemm.m, 50); /* m, n, k */
    CHECK_UINT(seen.gemm.n, 1);
    CHECK_UINT(seen.gemm.k, 30);
}

TEST(a_triangular_solve_is_recorded)
{
    cublasHandle_t handle = handle_new();
    double one = 1, *a = zeros(30 * 30 * sizeof *a);

    CHECK_CODE(cublasDtrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER,
                           CUBLAS_OP_N, CUBLAS_DIAG_UNIT, -1, 5, &one, a, 30, a,
                           30),
               CUBLAS_STATUS_INVALID_VALUE);
    CHECK(!cublasDtrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER,
                       CUBLAS_OP_N, CUBLAS_DIAG_UNIT, 30, 5, &one, a, 30, a,
                       30));
    CHECK(!cudaDeviceSynchronize());
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.call.a, 30);
    CHECK_UINT(seen.call.b, 5);
    CHECK_UINT(seen.call.c, 30);
    CHECK_UINT(seen.call.e, CUDA_R_64F);
}

TEST(matrices_travel_by_columns)
{
    float in[6] = {1, 2, 99, 3, 4, 99}, out[4] = {0};
    float *device;

    CHECK(!cudaMalloc((void **)&device, 64));
    CHECK(!cublasSetMatrix(2, 2, sizeof *in, in, 3, device, 2));
    CHECK(!cublasGetMatrix(2, 2, sizeof *out, device, 2, out, 2));
    CHECK(out[0] == 1 && out[1] == 2 && out[2] == 3 && out[3] == 4);
    CHECK(!cublasGetVector(2, sizeof *out, device, 2, out, 1));
    CHECK(out[0] == 1 && out[1] == 3);
    CHECK_CODE(cublasSetMatrix(4, 2, sizeof *in, in, 3, device, 4),
               CUBLAS_STATUS_INVALID_VALUE);
}

TEST(a_descriptor_may_lie_on_the_stack)
{
    cublasLtMatrixLayoutOpaque_t a, b, d;
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasOperation_t transpose = CUBLAS_OP_T;
    cublasLtMatmulHeuristicResult_t result;
    cublasLtHandle_t handle;
    char *p = zeros(64 << 10);
    float one = 1;
    int count = 0;

    CHECK(!cublasLtCreate(&handle));
    CHECK(!cublasLtMatrixLayoutInit(&a, CUDA_R_16F, 64, 32, 64));
    CHECK(!cublasLtMatrixLayoutInit(&b, CUDA_R_16F, 64, 16, 64));
    CHECK(!cublasLtMatrixLayoutInit(&d, CUDA_R_16F, 32, 16, 32));
    CHECK(!cublasLtMatmulDescInit(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    CHECK(!cublasLtMatmulDescSetAttribute(&product, CUBLASLT_MATMUL_DESC_TRANSA,
                                          &transpose, sizeof transpose));
    CHECK(!cublasLtMatmulPreferenceInit(&preference));
    CHECK(!cublasLtMatmulAlgoGetHeuristic(handle, &product, &a, &b, &d, &d,
                                          &preference, 1, &result, &count));
    CHECK_UINT(count, 1);
    answer((int64_t)result.workspaceSize, "workspace of cublasLt 32x16x64");
    CHECK(!cublasLtMatmul(handle, &product, &one, p, &a, p + 8192, &b, &one,
                          p + 16384, &d, p + 16384, &d, &result.algo, NULL, 0,
                          NULL));
    CHECK(!cudaDeviceSynchronize());
    struct seen seen = trace_seen(TRACE_GEMM);
    CHECK_UINT(seen.gemm.m, 32);
    CHECK_UINT(seen.gemm.n, 16);
    CHECK_UINT(seen.gemm.k, 64);
}

TEST(attributes_have_their_size)
{
    cublasLtMatrixLayout_t layout;
    uint64_t rows = 0;
    int32_t batch = 9;
    size_t written = 0;

    CHECK(!cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 5, 6, 5));
    CHECK(!cublasLtMatrixLayoutGetAttribute(layout,
                                            CUBLASLT_MATRIX_LAYOUT_ROWS, &rows,
                                            sizeof rows, &written));
    CHECK(rows == 5 && written == sizeof rows);
    CHECK(!cublasLtMatrixLayoutGetAttribute(
        layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, NULL, 0, &written));
    CHECK_UINT(written, sizeof batch);
    CHECK_CODE(cublasLtMatrixLayoutSetAttribute(
                   layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, 2),
               CUBLAS_STATUS_INVALID_VALUE);
    CHECK(!cublasLtMatrixLayoutDestroy(layout));
    if (!is_real()) /* a handle after its end */
        CHECK_CODE(cublasLtMatrixLayoutDestroy(layout),
                   CUBLAS_STATUS_INVALID_VALUE);
}

TEST(an_algorithm_can_be_made_by_its_id)
{
    cublasLtMatmulAlgo_t algorithm;
    cublasLtHandle_t handle;
    uint32_t tile = 15, got = 0;
    int ids[4], count = 0;

    CHECK(!cublasLtCreate(&handle));
    CHECK(!cublasLtMatmulAlgoGetIds(handle, CUBLAS_COMPUTE_32F, CUDA_R_32F,
                                    CUDA_R_16F, CUDA_R_16F, CUDA_R_16F,
                                    CUDA_R_16F, 4, ids, &count));
    answer(count, "algorithms of cublasLt, of 4");
    CHECK(count == 1 || is_real());
    CHECK(!cublasLtMatmulAlgoInit(handle, CUBLAS_COMPUTE_32F, CUDA_R_32F,
                                  CUDA_R_16F, CUDA_R_16F, CUDA_R_16F,
                                  CUDA_R_16F, ids[0], &algorithm));
    CHECK(!cublasLtMatmulAlgoConfigSetAttribute(
        &algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile));
    CHECK(!cublasLtMatmulAlgoConfigGetAttribute(
        &algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID, &got, sizeof got, NULL));
    CHECK_UINT(got, tile);
}

TEST(plans_take_and_return_their_work_area)
{
    size_t before, during, after, total, estimate = 0;
    void *work = zeros(1024 * 1024 * 16);
    cufftHandle plan;

    CHECK(!cufftPlan2d(&plan, 2, 2, CUFFT_Z2Z)); /* the library, a plan and */
    CHECK(!cufftExecZ2Z(plan, work, work, 1));   /* a kernel take memory */
    CHECK(!cufftDestroy(plan));
    CHECK(!cudaMemGetInfo(&before, &total));
    CHECK(!cufftEstimate2d(1024, 1024, CUFFT_Z2Z, &estimate));
    CHECK_UINT(estimate, 1024 * 1024 * 16);
    CHECK(!cufftPlan2d(&plan, 1024, 1024, CUFFT_Z2Z));
    CHECK(!cudaMemGetInfo(&during, &total));
    answer((int64_t)(before - during),
           "bytes of a plan of cufft, 1024x1024 Z2Z");
    CHECK(before - during == estimate || is_real());
    CHECK(!cufftExecZ2Z(plan, work, work, CUFFT_INVERSE));
    CHECK(!cudaDeviceSynchronize());
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.call.b, 1024);
    CHECK(!cufftDestroy(plan));
    CHECK(!cudaMemGetInfo(&after, &total));
    CHECK_UINT(after, before);
    CHECK_CODE(cufftExecZ2Z(plan, work, work, 1), CUFFT_INVALID_PLAN);
}

TEST(a_prime_takes_the_long_way)
{
    size_t smooth = 0, prime = 0;
    int n[1] = {1009};

    CHECK(!cufftEstimate1d(1008, CUFFT_C2C, 10, &smooth));
    CHECK(!cufftEstimateMany(1, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 10,
                             &prime));
    answer((int64_t)smooth, "estimate of cufft C2C 1008 x 10");
    answer((int64_t)prime, "estimate of cufft C2C 1009 x 10");
    if (!is_real()) {
        CHECK_UINT(smooth, 1008 * 10 * 8);
        CHECK_UINT(prime, 8 * 1009 * 10 * 8);
    }
    n[0] = 0;
    CHECK_CODE(
        cufftEstimateMany(1, n, NULL, 1, 0, NULL, 1, 0, CUFFT_C2C, 10, &prime),
        CUFFT_INVALID_SIZE);
}

TEST(generators_generate)
{
    curandGenerator_t device, host;
    float numbers[2] = {5, 5}, *memory;

    CHECK(!cudaMalloc((void **)&memory, 4096));
    CHECK(!curandCreateGenerator(&device, CURAND_RNG_PSEUDO_DEFAULT));
    CHECK(!curandSetPseudoRandomGeneratorSeed(device, 17));
    CHECK(!curandGenerateNormal(device, memory, 1000, 0, 1));
    CHECK(!curandCreateGeneratorHost(&host, CURAND_RNG_PSEUDO_DEFAULT));
    CHECK(!curandGenerateUniform(host, numbers, 2));
    CHECK(numbers[1] != 5);
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.call.a, 1000);
    CHECK(!curandDestroyGenerator(device));
    CHECK_CODE(curandGenerateUniform(device, memory, 2),
               CURAND_STATUS_NOT_INITIALIZED);
}

TEST(files_reach_device_memory)
{
    char path[] = "/tmp/memsim-cufile-XXXXXX", back[8] = "";
    int fd = mkstemp(path);
    CUfileDescr_t description = {.type = CU_FILE_HANDLE_TYPE_OPAQUE_FD,
                                 .handle.fd = fd};
    CUfileHandle_t file;
    char *memory;

    CHECK(!cudaMalloc((void **)&memory, 4096));
    CHECK(!cudaMemcpy(memory + 16, "sparse", 7, cudaMemcpyHostToDevice));
    CHECK(cuFileHandleRegister(&file, &description).err == CU_FILE_SUCCESS);
    CHECK_UINT(cuFileWrite(file, memory, 7, 100, 16), 7);
    CHECK(pread(fd, back, 7, 100) == 7 && !strcmp(back, "sparse"));
    CHECK_UINT(cuFileRead(file, memory, 4096, 101, 32), 6);
    CHECK(!cudaMemcpy(back, memory + 32, 6, cudaMemcpyDeviceToHost));
    CHECK_STR(back, "parse");
    CHECK_UINT(cuFileRead(file, memory, 10, 5000, 0), 0);
    cuFileHandleDeregister(file);
    CHECK(cuFileRead(file, memory, 10, 0, 0) < 0);
    description.handle.fd = -1;
    CHECK(cuFileHandleRegister(&file, &description).err != CU_FILE_SUCCESS);
    unlink(path);
}

TEST(a_handle_takes_a_workspace_and_leaves_it_to_the_next)
{
    size_t before, with, after, total;
    cublasHandle_t handle;

    CHECK(!cudaMemGetInfo(&before, &total));
    cublasHandle_t kept = handle_new(), gone = handle_new();
    CHECK(!cudaMemGetInfo(&with, &total));
    CHECK(before > with && (before - with) % (2 << 20) == 0);
    answer((int64_t)(before - with), "bytes of two cuBLAS handles");
    CHECK(!cublasDestroy(gone));
    if (!is_real()) /* a handle after its end */
        CHECK_CODE(cublasDestroy(gone), CUBLAS_STATUS_NOT_INITIALIZED);
    handle = handle_new();
    CHECK(!cudaMemGetInfo(&after, &total));
    CHECK_UINT(after, with);
    CHECK(!cublasDestroy(kept));
    CHECK(!cublasDestroy(handle));
    CHECK(!cudaDeviceReset()); /* nothing is left to a new context's */
    CHECK(!cudaMemGetInfo(&before, &total));
    handle = handle_new();
    CHECK(!cudaMemGetInfo(&after, &total));
    CHECK(before > after);
    if (gpu_capability() == HOPPER)
        CHECK_UINT(before - after, 66 << 20);
}
