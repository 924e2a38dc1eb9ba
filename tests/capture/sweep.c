/* SPDX-License-Identifier: Apache-2.0
 * What a GPU takes for contexts, handles, streams and other objects, and the
 * workspaces that libraries ask for: answers to be read
 * (tools/on-a-card/conformance). Each kind is a process of its own, which
 * starts without a context. */
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <cufft.h>
#include <cusolverDn.h>

#include "answers.h"
#include "check.h"
#include "late.h"

#define BLAS   "libcublas.so.13"
#define DNN    "libcudnn.so.9"
#define FFT    "libcufft.so.12"
#define SOLVER "libcusolver.so.12"

#define OBJECTS 4

/* What has been taken of the GPU since the last call, as WHAT I. */
static void took(const char *what, int i)
{
    static int64_t last = -1;
    size_t available, total;

    CHECK(!cudaMemGetInfo(&available, &total));
    int64_t used = (int64_t)(total - available);
    if (last >= 0)
        answer(used - last, "bytes of %s %d", what, i);
    else
        answer(used, "bytes of a context, for %s", what);
    last = used;
}

TEST(streams)
{
    cudaStream_t stream;

    took("streams", 0);
    for (int i = 1; i <= 128; i++) {
        CHECK(!cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                            -(i % 4)));
        if (i < 10 || i % 32 == 0)
            took("streams", i);
    }
}

TEST(managed_memory)
{
    void *p;

    took("managed memory", 0);
    for (int i = 1; i <= 2; i++) {
        CHECK(!cudaMallocManaged(&p, 1 << 20, cudaMemAttachGlobal));
        took("managed memory", i);
    }
    CHECK(!cudaFree(p));
    took("managed memory, freed", 1);
}

TEST(graphs)
{
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    void *p;

    CHECK(!cudaMalloc(&p, 4096));
    took("graphs of 200 nodes", 0);
    for (int i = 1; i <= 100; i++) {
        cudaGraphNode_t node = NULL, next;
        struct cudaMemsetParams params = {
            .dst = p, .elementSize = 1, .width = 4096, .height = 1};

        CHECK(!cudaGraphCreate(&graph, 0));
        for (int k = 0; k < 200; k++, node = next)
            CHECK(!cudaGraphAddMemsetNode(&next, graph, node ? &node : NULL,
                                          node != NULL, &params));
        CHECK(!cudaGraphInstantiate(&exec, graph, 0));
        CHECK(!cudaGraphUpload(exec, 0));
        CHECK(!cudaStreamSynchronize(0));
        if (i == 1 || i == 10 || i == 100)
            took("graphs of 200 nodes", i);
    }
}

TEST(handles_of_cublas)
{
    cublasHandle_t handle;

    took("cuBLAS handles", 0);
    for (int i = 1; i <= OBJECTS; i++) {
        CHECK(!LATE(BLAS, cublasCreate_v2)(&handle));
        took("cuBLAS handles", i);
    }
}

TEST(handles_of_cudnn)
{
    cudnnHandle_t handle;

    took("cuDNN handles", 0);
    for (int i = 1; i <= OBJECTS; i++) {
        CHECK(!LATE(DNN, cudnnCreate)(&handle));
        took("cuDNN handles", i);
    }
}

TEST(handles_of_cusolver)
{
    cusolverDnHandle_t handle;

    took("cuSOLVER handles", 0);
    for (int i = 1; i <= OBJECTS; i++) {
        CHECK(!LATE(SOLVER, cusolverDnCreate)(&handle));
        took("cuSOLVER handles", i);
    }
}

TEST(plans_of_cufft)
{
    cufftHandle plan;
    size_t bytes;

    took("cuFFT plans", 0);
    for (int i = 1; i <= 64; i++) {
        CHECK(!LATE(FFT, cufftCreate)(&plan));
        CHECK(!LATE(FFT, cufftSetAutoAllocation)(plan, 0));
        CHECK(!LATE(FFT, cufftMakePlan1d)(plan, 1000 + 8 * i, CUFFT_R2C, 1,
                                          &bytes));
        answer((int64_t)bytes, "workspace of cufft R2C %d", 1000 + 8 * i);
        if (i < 4 || i % 16 == 0)
            took("cuFFT plans", i);
    }
}

/* N, C, size, filters, their size, stride, groups. */
static const int shapes[][7] = {
    {64, 3, 224, 64, 7, 2, 1},     {64, 64, 56, 64, 1, 1, 1},
    {64, 64, 56, 64, 3, 1, 1},     {64, 64, 56, 256, 1, 1, 1},
    {64, 256, 56, 128, 1, 1, 1},   {64, 128, 56, 128, 3, 2, 1},
    {64, 256, 56, 512, 1, 2, 1},   {64, 512, 28, 128, 1, 1, 1},
    {64, 128, 28, 128, 3, 1, 1},   {64, 512, 28, 1024, 1, 2, 1},
    {64, 256, 14, 256, 3, 1, 1},   {64, 1024, 14, 512, 1, 1, 1},
    {64, 512, 7, 512, 3, 1, 1},    {64, 2048, 7, 512, 1, 1, 1},
    {256, 3, 224, 768, 16, 16, 1}, {64, 3, 224, 128, 4, 4, 1},
    {64, 128, 56, 128, 7, 1, 128}, {64, 256, 28, 256, 7, 1, 256},
    {64, 512, 14, 512, 7, 1, 512}, {64, 1024, 7, 1024, 7, 1, 1024},
    {128, 32, 112, 32, 3, 1, 32},  {128, 96, 112, 96, 3, 2, 96},
    {128, 144, 56, 144, 5, 2, 144}, {64, 224, 56, 224, 3, 1, 4},
    {8, 64, 256, 64, 3, 1, 1},     {8, 128, 128, 128, 3, 1, 1},
    {8, 256, 64, 256, 3, 1, 1},    {4, 320, 64, 320, 3, 1, 1},
    {4, 640, 32, 640, 3, 1, 1},    {4, 1280, 16, 1280, 3, 1, 1},
};

struct convolution {
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t c;
};

static void convolution_set(struct convolution *v, const int *s,
                            cudnnDataType_t type, cudnnTensorFormat_t format)
{
    int n, c, h, w;

    CHECK(!LATE(DNN, cudnnSetTensor4dDescriptor)(v->x, format, type, s[0], s[1],
                                                 s[2], s[2]));
    CHECK(!LATE(DNN, cudnnSetFilter4dDescriptor)(v->w, type, format, s[3],
                                                 s[1] / s[6], s[4], s[4]));
    CHECK(!LATE(DNN, cudnnSetConvolution2dDescriptor)(
        v->c, s[4] == s[5] ? 0 : s[4] / 2, s[4] == s[5] ? 0 : s[4] / 2, s[5],
        s[5], 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CHECK(!LATE(DNN, cudnnSetConvolutionGroupCount)(v->c, s[6]));
    CHECK(!LATE(DNN, cudnnSetConvolutionMathType)(
        v->c, type == CUDNN_DATA_FLOAT ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH));
    CHECK(!LATE(DNN, cudnnGetConvolution2dForwardOutputDim)(v->c, v->x, v->w, &n,
                                                            &c, &h, &w));
    CHECK(!LATE(DNN, cudnnSetTensor4dDescriptor)(v->y, format, type, n, c, h,
                                                 w));
}

/* The first three that the heuristic names: their numbers and workspaces. */
#define TELL(found, count, direction)                                          \
    for (int k = 0; k < (count) && k < 3; k++)                                 \
        if (!(found)[k].status)                                                \
    answer((int64_t)(found)[k].memory, "workspace of %s %s, choice %d is %d",  \
           direction, name, k, (int)(found)[k].algo)

static void convolution_ask(const struct convolution *v, const char *name)
{
    cudnnConvolutionFwdAlgoPerf_t forward[8];
    cudnnConvolutionBwdDataAlgoPerf_t data[8];
    cudnnConvolutionBwdFilterAlgoPerf_t filter[8];
    int count = 0;

    if (!LATE(DNN, cudnnGetConvolutionForwardAlgorithm_v7)(
            v->handle, v->x, v->w, v->c, v->y, 8, &count, forward))
        TELL(forward, count, "conv");
    if (!LATE(DNN, cudnnGetConvolutionBackwardDataAlgorithm_v7)(
            v->handle, v->w, v->y, v->c, v->x, 8, &count, data))
        TELL(data, count, "conv data");
    if (!LATE(DNN, cudnnGetConvolutionBackwardFilterAlgorithm_v7)(
            v->handle, v->x, v->y, v->c, v->w, 8, &count, filter))
        TELL(filter, count, "conv filter");
}

TEST(workspaces_of_convolutions)
{
    struct convolution v;

    CHECK(!LATE(DNN, cudnnCreate)(&v.handle));
    CHECK(!LATE(DNN, cudnnCreateTensorDescriptor)(&v.x));
    CHECK(!LATE(DNN, cudnnCreateTensorDescriptor)(&v.y));
    CHECK(!LATE(DNN, cudnnCreateFilterDescriptor)(&v.w));
    CHECK(!LATE(DNN, cudnnCreateConvolutionDescriptor)(&v.c));
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int half = 0; half < 2; half++)
            for (int last = 0; last < 2; last++) {
                const int *s = shapes[i];
                char name[96];

                snprintf(name, sizeof name, "%s %s %dx%dx%d, %d of %d/%d g%d",
                         half ? "fp16" : "fp32", last ? "NHWC" : "NCHW", s[0],
                         s[1], s[2], s[3], s[4], s[5], s[6]);
                convolution_set(&v, s,
                                half ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT,
                                last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW);
                convolution_ask(&v, name);
            }
}

static void recurrent_ask(cudnnHandle_t handle, cudnnRNNMode_t mode, int hidden,
                          int layers, int both, int steps)
{
    cudnnRNNDescriptor_t d;
    cudnnRNNDataDescriptor_t x;
    size_t work = 0, reserve = 0;
    int lengths[64];
    float zero = 0;

    for (int i = 0; i < 64; i++)
        lengths[i] = steps;
    CHECK(!LATE(DNN, cudnnCreateRNNDescriptor)(&d));
    CHECK(!LATE(DNN, cudnnCreateRNNDataDescriptor)(&x));
    CHECK(!LATE(DNN, cudnnSetRNNDescriptor_v8)(
        d, CUDNN_RNN_ALGO_STANDARD, mode, CUDNN_RNN_DOUBLE_BIAS,
        both ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
        CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, hidden, hidden,
        hidden, layers, NULL, 0));
    CHECK(!LATE(DNN, cudnnSetRNNDataDescriptor)(
        x, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, steps, 64,
        hidden, lengths, &zero));
    for (int training = 0; training < 2; training++) {
        if (LATE(DNN, cudnnGetRNNTempSpaceSizes)(
                handle, d,
                training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
                x, &work, &reserve))
            continue;
        answer((int64_t)work, "workspace of rnn %d, %d x %d, %d, %d steps, %d",
               (int)mode, hidden, layers, both, steps, training);
        answer((int64_t)reserve, "reserve of rnn %d, %d x %d, %d, %d steps, %d",
               (int)mode, hidden, layers, both, steps, training);
    }
    CHECK(!LATE(DNN, cudnnDestroyRNNDescriptor)(d));
    CHECK(!LATE(DNN, cudnnDestroyRNNDataDescriptor)(x));
}

TEST(spaces_of_recurrent_networks)
{
    static const int hidden[] = {32, 128, 512, 768, 1024};
    cudnnHandle_t handle;

    CHECK(!LATE(DNN, cudnnCreate)(&handle));
    for (int mode = CUDNN_RNN_RELU; mode <= CUDNN_GRU; mode++)
        for (int i = 0; i < 5; i++)
            for (int layers = 1; layers <= 3; layers++)
                for (int both = 0; both < 2; both++)
                    for (int steps = 16; steps <= 256; steps *= 4)
                        recurrent_ask(handle, (cudnnRNNMode_t)mode, hidden[i],
                                      layers, both, steps);
}

TEST(workspaces_of_cusolver)
{
    cusolverDnHandle_t handle;
    int elements;

    CHECK(!LATE(SOLVER, cusolverDnCreate)(&handle));
    for (int n = 8; n <= 4096; n *= 2) {
        float *a = NULL, *w = NULL;

        if (!LATE(SOLVER, cusolverDnSgeqrf_bufferSize)(handle, n, n / 2, a, n,
                                                       &elements))
            answer(elements, "elements of Sgeqrf %d", n);
        if (!LATE(SOLVER, cusolverDnSgetrf_bufferSize)(handle, n, n, a, n,
                                                       &elements))
            answer(elements, "elements of Sgetrf %d", n);
        if (!LATE(SOLVER, cusolverDnSpotrf_bufferSize)(
                handle, CUBLAS_FILL_MODE_LOWER, n, a, n, &elements))
            answer(elements, "elements of Spotrf %d", n);
        if (!LATE(SOLVER, cusolverDnSsyevd_bufferSize)(
                handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, n, a,
                n, w, &elements))
            answer(elements, "elements of Ssyevd %d", n);
        if (!LATE(SOLVER, cusolverDnSgesvd_bufferSize)(handle, n, n / 2,
                                                       &elements))
            answer(elements, "elements of Sgesvd %d", n);
    }
}
