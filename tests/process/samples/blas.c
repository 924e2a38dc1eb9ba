/* SPDX-License-Identifier: Apache-2.0
 * A program of cuBLAS: two products and a norm, with the card's memory given
 * by the program. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"

int main(void)
{
    enum { N = 2048 };
    const float one = 1, zero = 0;
    size_t bytes = sizeof(float) * N * N;
    float *host = calloc(N, N * sizeof *host), *a, *b, *c, norm = -1;
    cublasHandle_t handle;

    CALL(cudaMalloc((void **)&a, bytes));
    CALL(cudaMalloc((void **)&b, bytes));
    CALL(cudaMalloc((void **)&c, bytes));
    CALL(cublasCreate(&handle));
    CALL(cublasSetMatrix(N, N, sizeof *host, host, N, a, N));
    CALL(cublasSetMatrix(N, N, sizeof *host, host, N, b, N));
    CALL(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, N, N, N, &one, a, N, b,
                     N, &zero, c, N));
    CALL(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a,
                      CUDA_R_16BF, N, b, CUDA_R_16BF, N, &zero, c, CUDA_R_32F,
                      N, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    CALL(cublasSnrm2(handle, N, c, 1, &norm));
    CALL(cublasGetMatrix(N, N, sizeof *host, c, N, host, N));
    CALL(cublasDestroy(handle));
    CALL(cudaFree(a));
    CALL(cudaFree(b));
    CALL(cudaFree(c));
    free(host);
    puts("done");
    return 0;
}
