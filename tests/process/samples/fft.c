/* SPDX-License-Identifier: Apache-2.0
 * A program of cuFFT: a transform of two dimensions there and back, and a batch
 * of real ones. */
#include <cuda_runtime_api.h>
#include <cufft.h>
#include <stdio.h>
#include <stdlib.h>

#include "call.h"

int main(void)
{
    enum { N = 1024, BATCH = 64 };
    cufftHandle image, rows;
    cufftComplex *data;
    cufftReal *real;
    int length[] = {N};

    CALL(cudaMalloc((void **)&data, sizeof *data * N * N));
    CALL(cudaMalloc((void **)&real, sizeof *real * N * BATCH));
    CALL(cufftPlan2d(&image, N, N, CUFFT_C2C));
    CALL(cufftExecC2C(image, data, data, CUFFT_FORWARD));
    CALL(cufftExecC2C(image, data, data, CUFFT_INVERSE));
    CALL(cufftPlanMany(&rows, 1, length, NULL, 1, N, NULL, 1, N / 2 + 1,
                       CUFFT_R2C, BATCH));
    CALL(cufftExecR2C(rows, real, data));
    CALL(cudaDeviceSynchronize());
    CALL(cufftDestroy(image));
    CALL(cufftDestroy(rows));
    CALL(cudaFree(data));
    CALL(cudaFree(real));
    puts("done");
    return 0;
}
