/* SPDX-License-Identifier: Apache-2.0 */
#include <cudnn.h>

#include "check.h"
#include "cudnn_trace.h"

static cudnnHandle_t handle_new(void)
{
    cudnnHandle_t handle = NULL;

    CHECK(!cudnnCreate(&handle));
    return handle;
}

static cudnnTensorDescriptor_t tensor(cudnnDataType_t type, int n, int c, int h,
                                      int w)
{
    cudnnTensorDescriptor_t d = NULL;

    CHECK(!cudnnCreateTensorDescriptor(&d));
    CHECK(!cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NCHW, type, n, c, h, w));
    return d;
}

static size_t taken_by_handles(void)
{
    size_t before, after, total;
    cudnnHandle_t first, second;

    CHECK(!cudaMemGetInfo(&before, &total));
    CHECK(!cudnnCreate(&first));
    CHECK(!cudnnCreate(&second));
    CHECK(!cudaMemGetInfo(&after, &total));
    return before - after;
}

TEST(each_handle_takes_memory)
{
    CHECK_UINT(taken_by_handles(), 16 << 20);
    CHECK_UINT(taken_by_handles(), 16 << 20);
}

TEST(an_eager_context_has_kernels_but_no_handles)
{
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    CHECK_UINT(taken_by_handles(), 16 << 20);
}

TEST(handles_keep_their_stream)
{
    cudnnHandle_t handle = handle_new();
    cudaStream_t stream, got = NULL;

    CHECK(!cudaStreamCreate(&stream));
    CHECK(!cudnnSetStream(handle, stream));
    CHECK(!cudnnGetStream(handle, &got));
    CHECK(got == stream);
    CHECK(cudnnSetStream(handle, (cudaStream_t)0x123456));
    CHECK(!cudnnDestroy(handle));
    CHECK(cudnnDestroy(handle));
    CHECK(cudnnGetStream(handle, &got));
    CHECK(cudnnSetStream(NULL, stream));
}

TEST(the_version_is_the_headers)
{
    int major = 0;

    CHECK_UINT(cudnnGetVersion(), CUDNN_VERSION);
    CHECK(!cudnnGetProperty(MAJOR_VERSION, &major));
    CHECK(major == CUDNN_MAJOR);
    CHECK(cudnnGetProperty((libraryPropertyType)9, &major));
    CHECK_STR(cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM),
              "CUDNN_STATUS_BAD_PARAM");
    CHECK(cudnnGetErrorString((cudnnStatus_t)77777));
}

TEST(convolutions_say_what_was_set)
{
    int count = 0, pad[3] = {9, 9, 9}, stride[3] = {9, 9, 9}, dilation[3];
    cudnnConvolutionDescriptor_t d;
    cudnnConvolutionMode_t mode;
    cudnnDataType_t type;

    CHECK(!cudnnCreateConvolutionDescriptor(&d));
    CHECK(!cudnnSetConvolutionNdDescriptor(
        d, 2, (const int[]){1, 2}, (const int[]){3, 4}, (const int[]){5, 6},
        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CHECK(!cudnnGetConvolutionNdDescriptor(d, 3, &count, pad, stride, dilation,
                                           &mode, &type));
    CHECK(count == 2 && pad[0] == 1 && pad[1] == 2 && pad[2] == 9);
    CHECK(stride[0] == 3 && stride[1] == 4 && dilation[1] == 6);
    CHECK(mode == CUDNN_CROSS_CORRELATION && type == CUDNN_DATA_FLOAT);
    CHECK(!cudnnGetConvolutionNdDescriptor(d, 1, &count, pad, stride, dilation,
                                           &mode, &type));
    CHECK(cudnnGetConvolutionNdDescriptor(d, 3, NULL, pad, stride, dilation,
                                          &mode, &type));
    CHECK(!cudnnDestroyConvolutionDescriptor(d));
}

TEST(tensors_say_what_was_set)
{
    cudnnTensorDescriptor_t d;
    cudnnDataType_t type;
    int count = 0, dims[8] = {0}, strides[8] = {0};
    const int want[] = {2, 3, 4, 5, 6}, steps[] = {400, 130, 30, 6, 1};
    size_t bytes = 0;

    CHECK(!cudnnCreateTensorDescriptor(&d));
    CHECK(!cudnnSetTensorNdDescriptor(d, CUDNN_DATA_HALF, 5, want, steps));
    CHECK(!cudnnGetTensorNdDescriptor(d, 8, &type, &count, dims, strides));
    CHECK(type == CUDNN_DATA_HALF && count == 5);
    CHECK(!memcmp(dims, want, sizeof want));
    CHECK(!memcmp(strides, steps, sizeof steps));
    CHECK(!cudnnGetTensorSizeInBytes(d, &bytes));
    CHECK_UINT(bytes, 2 * (400 + 2 * 130 + 3 * 30 + 4 * 6 + 5 + 1));
    CHECK(cudnnSetTensorNdDescriptor(d, CUDNN_DATA_HALF, 9, want, steps));
    CHECK(
        cudnnSetTensorNdDescriptor(d, CUDNN_DATA_HALF, 5, (int[5]){0}, steps));
    CHECK(cudnnSetTensorNdDescriptor(NULL, CUDNN_DATA_HALF, 5, want, steps));
    CHECK(cudnnDestroyFilterDescriptor((cudnnFilterDescriptor_t)d));
    CHECK(!cudnnDestroyTensorDescriptor(d));
    CHECK(cudnnDestroyTensorDescriptor(d));
    CHECK(!cudnnDestroyTensorDescriptor(NULL));
}

TEST(channels_last_has_its_strides)
{
    cudnnTensorDescriptor_t d;
    int n, c, h, w, strides[4];
    cudnnDataType_t type;

    CHECK(!cudnnCreateTensorDescriptor(&d));
    CHECK(!cudnnSetTensor4dDescriptor(d, CUDNN_TENSOR_NHWC, CUDNN_DATA_FLOAT, 2,
                                      3, 4, 5));
    CHECK(!cudnnGetTensor4dDescriptor(d, &type, &n, &c, &h, &w, &strides[0],
                                      &strides[1], &strides[2], &strides[3]));
    CHECK(strides[0] == 60 && strides[1] == 1 && strides[2] == 15 &&
          strides[3] == 3);
}

struct classic {
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t d;
    cudnnConvolutionFwdAlgo_t algorithm;
    size_t bytes; /* of workspace */
};

/* 32 filters of 3x3 with stride 2 on 8 pictures of 32x32 in half precision. */
static struct classic classic_new(int channels)
{
    struct classic c = {.handle = handle_new()};
    cudnnConvolutionFwdAlgoPerf_t found;
    int n, out, height, width, count = 0;

    c.x = tensor(CUDNN_DATA_HALF, 8, channels, 32, 32);
    CHECK(!cudnnCreateFilterDescriptor(&c.w));
    CHECK(!cudnnSetFilter4dDescriptor(c.w, CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW,
                                      32, channels, 3, 3));
    CHECK(!cudnnCreateConvolutionDescriptor(&c.d));
    CHECK(!cudnnSetConvolution2dDescriptor(
        c.d, 1, 1, 2, 2, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    CHECK(!cudnnGetConvolution2dForwardOutputDim(c.d, c.x, c.w, &n, &out,
                                                 &height, &width));
    CHECK(n == 8 && out == 32 && height == 16 && width == 16);
    c.y = tensor(CUDNN_DATA_HALF, n, out, height, width);
    CHECK(!cudnnGetConvolutionForwardAlgorithm_v7(
        c.handle, c.x, c.w, c.d, c.y, 1, &count, &found));
    CHECK(count == 1 && !found.status);
    CHECK(!cudnnGetConvolutionForwardWorkspaceSize(
        c.handle, c.x, c.w, c.d, c.y, found.algo, &c.bytes));
    CHECK_UINT(c.bytes, found.memory);
    c.algorithm = found.algo;
    return c;
}

static cudnnStatus_t classic_run(const struct classic *c, void *workspace,
                                 size_t bytes)
{
    float one = 1;

    return cudnnConvolutionForward(c->handle, &one, c->x, &one, c->w, &one,
                                   c->d, c->algorithm, workspace, bytes, &one,
                                   c->y, &one);
}

TEST(a_convolution_by_the_classic_api)
{
    need_fake("records, and tensors at no address");
    need_capability(70, 999, "tensor cores");
    struct classic c = classic_new(24);

    CHECK(c.bytes >=
          2 * (8 * 24 * 32 * 32 + 32 * 24 * 9 + 8 * 32 * 16 * 16));
    CHECK(classic_run(&c, NULL, 0));
    CHECK(!classic_run(&c, &c, c.bytes));
    struct seen seen = trace_seen(TRACE_CONVOLUTION);
    CHECK(seen.count == 1);
    CHECK_UINT(seen.convolution.workspace_bytes, c.bytes);
    CHECK(strstr(seen.text, "pad=1,1 stride=2,2 dilation=1,1 groups=1 "
                            "layout=nchw math=tensor"));
    CHECK(!cudnnSetConvolutionMathType(c.d, CUDNN_FMA_MATH));
    CHECK(!classic_run(&c, NULL, 0));
    CHECK(strstr(trace_seen(TRACE_CONVOLUTION).text, "math=plain"));
}

TEST(a_small_convolution_needs_no_workspace)
{
    size_t bytes = classic_new(16).bytes;

    answer((int64_t)bytes, "workspace of a small convolution");
    if (gpu_capability() == HOPPER)
        CHECK_UINT(bytes, 0);
}

TEST(batch_norm_is_recorded)
{
    cudnnHandle_t handle = handle_new();
    cudnnTensorDescriptor_t x = tensor(CUDNN_DATA_FLOAT, 8, 16, 32, 32);
    cudnnTensorDescriptor_t scale = tensor(CUDNN_DATA_FLOAT, 1, 1, 1, 1);
    int n, c, h, w, s[4];
    cudnnDataType_t type;
    float one = 1;

    CHECK(!cudnnDeriveBNTensorDescriptor(scale, x, CUDNN_BATCHNORM_SPATIAL));
    CHECK(!cudnnGetTensor4dDescriptor(scale, &type, &n, &c, &h, &w, &s[0],
                                      &s[1], &s[2], &s[3]));
    CHECK(n == 1 && c == 16 && h == 1 && w == 1);
    CHECK(!cudnnBatchNormalizationForwardInference(
        handle, CUDNN_BATCHNORM_SPATIAL, &one, &one, x, &one, x, &one, scale,
        &one, &one, &one, &one, 1e-5));
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK(seen.count == 1);
    CHECK_UINT(seen.call.a, 4 * 8 * 16 * 32 * 32);
    CHECK_STR(seen.text, "x=8,16,32,32 xs=16384,1024,32,1 xt=float ");
    CHECK(cudnnBatchNormalizationForwardInference(
        handle, CUDNN_BATCHNORM_SPATIAL, &one, &one, NULL, &one, x, &one, scale,
        &one, &one, &one, &one, 1e-5));
}

static cudnnRNNDescriptor_t rnn(cudnnRNNMode_t mode, cudnnRNNBiasMode_t bias,
                                cudnnDirectionMode_t direction, int layers,
                                int projection)
{
    cudnnRNNDescriptor_t d = NULL;

    CHECK(!cudnnCreateRNNDescriptor(&d));
    CHECK(!cudnnSetRNNDescriptor_v8(
        d, CUDNN_RNN_ALGO_STANDARD, mode, bias, direction, CUDNN_LINEAR_INPUT,
        CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, 24, 32,
        projection, layers, NULL, 0));
    return d;
}

/* The sizes are those of the parameters of torch.nn's modules. */
TEST(weights_take_what_their_shapes_say)
{
    cudnnHandle_t handle = handle_new();
    const struct {
        cudnnRNNMode_t mode;
        cudnnRNNBiasMode_t bias;
        cudnnDirectionMode_t direction;
        int layers, projection;
        size_t elements;
    } cases[] = {
        {CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, 1, 32,
         4 * 32 * (24 + 32 + 2)},
        {CUDNN_LSTM, CUDNN_RNN_NO_BIAS, CUDNN_UNIDIRECTIONAL, 1, 32,
         4 * 32 * (24 + 32)},
        {CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, 1, 8,
         4 * 32 * (24 + 8 + 2) + 8 * 32},
        {CUDNN_GRU, CUDNN_RNN_SINGLE_INP_BIAS, CUDNN_UNIDIRECTIONAL, 2, 32,
         3 * 32 * (24 + 32 + 1) + 3 * 32 * (32 + 32 + 1)},
        {CUDNN_RNN_TANH, CUDNN_RNN_DOUBLE_BIAS, CUDNN_BIDIRECTIONAL, 2, 32,
         2 * 32 * (24 + 32 + 2) + 2 * 32 * (64 + 32 + 2)},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes = 0;

        CHECK(!cudnnGetRNNWeightSpaceSize(
            handle,
            rnn(cases[i].mode, cases[i].bias, cases[i].direction,
                cases[i].layers, cases[i].projection),
            &bytes));
        CHECK_UINT(bytes, 4 * cases[i].elements);
    }
}

/* Every part once, one behind the other: together they are the whole. */
TEST(weights_lie_without_gaps)
{
    cudnnHandle_t handle = handle_new();
    cudnnRNNDescriptor_t d =
        rnn(CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_BIDIRECTIONAL, 2, 8);
    cudnnTensorDescriptor_t m = tensor(CUDNN_DATA_FLOAT, 1, 1, 1, 1);
    cudnnTensorDescriptor_t b = tensor(CUDNN_DATA_FLOAT, 1, 1, 1, 1);
    char *const base = (char *)0x10000;
    static char used[1 << 20];
    size_t bytes = 0, size;
    void *at[2];

    CHECK(!cudnnGetRNNWeightSpaceSize(handle, d, &bytes));
    CHECK(bytes < sizeof used);
    for (int layer = 0; layer < 4; layer++)
        for (int linear = 0; linear <= 8; linear++) {
            CHECK(!cudnnGetRNNWeightParams(handle, d, layer, bytes, base,
                                           linear, m, &at[0], b, &at[1]));
            CHECK(!at[1] == (linear == 8)); /* the projection has no bias */
            for (int i = 0; i < 2 && at[i]; i++) {
                CHECK(!cudnnGetTensorSizeInBytes(i ? b : m, &size));
                for (size_t k = 0; k < size; k++)
                    used[(char *)at[i] - base + (ptrdiff_t)k]++;
            }
        }
    for (size_t i = 0; i < bytes; i++)
        if (used[i] != 1) {
            CHECK(used[i] == 1);
            break;
        }
    CHECK(cudnnGetRNNWeightParams(handle, d, 4, bytes, base, 0, m, at, b, at));
    CHECK(cudnnGetRNNWeightParams(handle, d, 0, bytes, base, 9, m, at, b, at));
    CHECK(!cudnnGetRNNWeightParams(handle, d, 0, bytes - 1, base, 0, m, at, b,
                                   at));
}

TEST(a_recurrent_step_is_recorded)
{
    cudnnHandle_t handle = handle_new();
    cudnnRNNDescriptor_t d =
        rnn(CUDNN_GRU, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, 2, 32);
    cudnnRNNDataDescriptor_t x;
    const int lengths[] = {7, 5, 4};
    size_t work = 0, reserve = 0, none = 1;

    CHECK(!cudnnCreateRNNDataDescriptor(&x));
    CHECK(!cudnnSetRNNDataDescriptor(x, CUDNN_DATA_FLOAT,
                                     CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, 7,
                                     3, 24, lengths, NULL));
    CHECK(!cudnnGetRNNTempSpaceSizes(handle, d, CUDNN_FWD_MODE_TRAINING, x,
                                     &work, &reserve));
    CHECK(reserve > 0);
    size_t asked = work;
    CHECK(!cudnnGetRNNTempSpaceSizes(handle, d, CUDNN_FWD_MODE_INFERENCE, x,
                                     &work, &none));
    CHECK(none == 0);
    CHECK_UINT(work, asked);
    CHECK(!cudnnRNNForward(handle, d, CUDNN_FWD_MODE_TRAINING, NULL, x, NULL, x,
                           NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL,
                           work, NULL, reserve, NULL));
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.call.workspace_bytes, work);
    CHECK_UINT(seen.call.a, 16);
    struct seen told = trace_seen(TRACE_SIZE_RANGE); /* two sizes, and one */
    CHECK_UINT(told.count, 3);
    CHECK_UINT(told.size.bytes, work);
    CHECK_UINT(told.size.least_bytes, work / 2);
    CHECK_UINT(told.size.most_bytes, 2 * work + (32 << 20));
    CHECK_STR(seen.text, "mode=gru type=float input=24 hidden=32 projection=32 "
                         "layers=2 directions=1 length=7 batch=3 tokens=16 "
                         "math=tensor");
    CHECK(cudnnRNNForward(handle, NULL, CUDNN_FWD_MODE_TRAINING, NULL, x, NULL,
                          x, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL,
                          work, NULL, reserve, NULL));
}

/* An H200's, in PyTorch's two layers of 1024 with 64 sequences of 128. */
TEST(an_lstm_takes_what_a_card_asked_for)
{
    need_capability(HOPPER, HOPPER, "sizes of Hopper");
    cudnnHandle_t handle = handle_new();
    cudnnRNNDescriptor_t d = NULL;
    cudnnRNNDataDescriptor_t x;
    int lengths[64];
    size_t work = 0, reserve = 0;

    for (int i = 0; i < 64; i++)
        lengths[i] = 128;
    CHECK(!cudnnCreateRNNDescriptor(&d));
    CHECK(!cudnnSetRNNDescriptor_v8(
        d, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
        CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT,
        CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, 1024, 1024, 1024, 2, NULL, 0));
    CHECK(!cudnnCreateRNNDataDescriptor(&x));
    CHECK(!cudnnSetRNNDataDescriptor(x, CUDNN_DATA_FLOAT,
                                     CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                     128, 64, 1024, lengths, NULL));
    CHECK(!cudnnGetRNNTempSpaceSizes(handle, d, CUDNN_FWD_MODE_TRAINING, x,
                                     &work, &reserve));
    CHECK_UINT(work, 290456320);
    CHECK_UINT(reserve, 369099008);
    CHECK_UINT(trace_seen(TRACE_SIZE_RANGE).count, 0); /* it is known */
}

TEST(dropout_states_have_a_size)
{
    cudnnHandle_t handle = handle_new();
    cudnnDropoutDescriptor_t d;
    unsigned long long seed = 0;
    size_t bytes = 0;
    float probability = 0;
    void *states = NULL, *got;

    CHECK(!cudnnDropoutGetStatesSize(handle, &bytes));
    CHECK(bytes > 0);
    CHECK(!cudaMalloc(&states, bytes));
    CHECK(!cudnnCreateDropoutDescriptor(&d));
    CHECK(cudnnSetDropoutDescriptor(d, handle, 0.5f, states, 1, 7));
    CHECK(!cudnnSetDropoutDescriptor(d, handle, 0.5f, states, bytes, 7));
    CHECK(!cudnnGetDropoutDescriptor(d, handle, &probability, &got, &seed));
    CHECK(probability == 0.5f && got == states && seed == 7);
    CHECK(trace_seen(TRACE_LIBRARY_CALL).count == 1);
}

TEST(ctc_loss_is_recorded)
{
    cudnnHandle_t handle = handle_new();
    cudnnCTCLossDescriptor_t d;
    cudnnTensorDescriptor_t p;
    const int dims[] = {50, 4, 20}, strides[] = {80, 20, 1};
    size_t bytes = 0;

    CHECK(!cudnnCreateTensorDescriptor(&p));
    CHECK(!cudnnSetTensorNdDescriptor(p, CUDNN_DATA_FLOAT, 3, dims, strides));
    CHECK(!cudnnCreateCTCLossDescriptor(&d));
    CHECK(!cudnnSetCTCLossDescriptor_v9(d, CUDNN_DATA_FLOAT,
                                        CUDNN_LOSS_NORMALIZATION_SOFTMAX,
                                        CUDNN_CTC_ZERO_OOB_GRADIENTS, 255));
    CHECK(!cudnnGetCTCLossWorkspaceSize_v8(
        handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, d, p, p, &bytes));
    CHECK(bytes > 0);
    CHECK(!cudnnCTCLoss_v8(handle, CUDNN_CTC_LOSS_ALGO_DETERMINISTIC, d, p,
                           &bytes, NULL, NULL, NULL, &bytes, p, &bytes, bytes,
                           NULL));
    struct seen seen = trace_seen(TRACE_LIBRARY_CALL);
    CHECK_UINT(seen.call.a, 50);
    CHECK_UINT(seen.call.d, 1);
}
