/* SPDX-License-Identifier: Apache-2.0
 * A plain program of the CUDA runtime: a sum of vectors in two streams, a
 * reduction with shared memory, constant and managed memory, events. Its
 * kernels' results are not looked at, its calls' are. Prints the milliseconds
 * between two events. */
#include <cstdio>
#include <cstdlib>

#define CALL(call)                                                       \
    do {                                                                 \
        cudaError_t error = (call);                                      \
        if (error) {                                                     \
            std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorName(error)); \
            std::exit(1);                                                \
        }                                                                \
    } while (0)

__constant__ float scale;
__device__ unsigned calls;

__global__ void add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        c[i] = scale * a[i] + b[i];
}

template <int THREADS>
__global__ void sum(const float *a, float *out, int n)
{
    __shared__ float part[THREADS];
    float mine = 0;

    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n;
         i += gridDim.x * THREADS)
        mine += a[i];
    part[threadIdx.x] = mine;
    __syncthreads();
    for (int half = THREADS / 2; half; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        atomicAdd(&calls, 1);
        atomicAdd(out, part[0]);
    }
}

static void add_in_streams(const float *host, int n)
{
    cudaStream_t streams[2];
    float *a[2], *b[2], *managed;

    CALL(cudaMallocManaged(&managed, n * sizeof *managed));
    for (int i = 0; i < 2; i++) {
        CALL(cudaStreamCreate(&streams[i]));
        CALL(cudaMalloc(&a[i], n * sizeof **a));
        CALL(cudaMallocAsync(&b[i], n * sizeof **b, streams[i]));
        CALL(cudaMemcpyAsync(a[i], host, n * sizeof *host,
                             cudaMemcpyHostToDevice, streams[i]));
        CALL(cudaMemsetAsync(b[i], 0, n * sizeof **b, streams[i]));
        add<<<(n + 255) / 256, 256, 0, streams[i]>>>(a[i], b[i], managed, n);
        CALL(cudaGetLastError());
    }
    for (int i = 0; i < 2; i++) {
        CALL(cudaFreeAsync(b[i], streams[i]));
        CALL(cudaStreamSynchronize(streams[i]));
        CALL(cudaStreamDestroy(streams[i]));
        CALL(cudaFree(a[i]));
    }
    managed[0] = 1; /* the host may write there, too */
    CALL(cudaFree(managed));
}

int main()
{
    const int n = 1 << 22;
    const float two = 2;
    float *host, *card, total = 0, ms = -1;
    cudaEvent_t start, end;
    int blocks = 0;

    CALL(cudaMallocHost(&host, n * sizeof *host));
    CALL(cudaMemcpyToSymbol(scale, &two, sizeof two));
    add_in_streams(host, n);
    CALL(cudaMalloc(&card, (n + 1) * sizeof *card));
    CALL(cudaMemcpy(card, host, n * sizeof *host, cudaMemcpyHostToDevice));
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sum<256>, 256,
                                                       0));
    CALL(cudaEventCreate(&start));
    CALL(cudaEventCreate(&end));
    CALL(cudaEventRecord(start));
    for (int i = 0; i < 10; i++)
        sum<256><<<blocks * 4, 256>>>(card, card + n, n);
    CALL(cudaEventRecord(end));
    CALL(cudaEventSynchronize(end));
    CALL(cudaEventElapsedTime(&ms, start, end));
    CALL(cudaMemcpy(&total, card + n, sizeof total, cudaMemcpyDeviceToHost));
    CALL(cudaDeviceSynchronize());
    CALL(cudaFree(card));
    CALL(cudaFreeHost(host));
    std::printf("%.4f\n", ms);
    return ms > 0 ? 0 : 1;
}
