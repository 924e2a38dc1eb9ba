/* SPDX-License-Identifier: Apache-2.0
 * Prices of kernels by what bounds them, against what an H200 took in a running
 * job (PyTorch 2.11, cuDNN 9.19). */
#include "check.h"
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "fits/cost_fit.h"
#include "runtime/cost/cost_image.h"

#include <math.h>
#include <stdlib.h>

static struct cost_gpu limits_of(const char *name)
{
    struct gpu gpu;
    struct cost_gpu limits;
    struct err err = {""};

    if (gpu_load(name, &gpu, &err))
        CHECK_FAIL("%s", err.text);
    cost_gpu_set(&gpu, &limits);
    return limits;
}

/* The price of WORK with the fit that GPU borrows. */
static struct cost_answer price(const char *name, const struct work *work)
{
    struct cost_gpu limits = limits_of(name);
    struct cost_answer answer;
    struct gpu gpu;
    struct err err = {""};

    CHECK(!gpu_load(name, &gpu, &err));
    struct cost_image *image = cost_fit_load(&gpu, NULL, &err);
    CHECK(image);
    cost_price(image, &limits, work, &answer);
    free(image);
    return answer;
}

static double us(const char *name, const struct work *work)
{
    return (double)price(name, work).ns / 1e3;
}

/* A kernel of BLOCKS of THREADS that moves BYTES for ELEMENTS. */
static struct work kernel(enum work_family family, enum work_rate rate,
                          uint64_t elements, double bytes, uint64_t blocks,
                          uint32_t threads)
{
    return (struct work){.family = family,
                         .source = WORK_RULE,
                         .element_bytes = 4,
                         .elements = elements,
                         .flops = (double)elements,
                         .read_bytes = bytes,
                         .blocks = blocks,
                         .threads = threads,
                         .rate = (uint8_t)rate,
                         .rows = {.rows = 1, .columns = elements}};
}

static const struct {
    enum work_family family;
    enum work_rate rate;
    uint64_t elements;
    double mbytes;
    uint64_t blocks;
    uint32_t threads;
    double us;
} measured[] = {
    {WORK_NORM_FORWARD, WORK_RATE_LAYER_NORM, 25690112, 207.1, 200704, 128,
     303.8},
    {WORK_NORM_FORWARD, WORK_RATE_LAYER_NORM, 12910592, 103.4, 12608, 128,
     42.0},
    {WORK_NORM_BACKWARD, WORK_RATE_LAYER_NORM_DATA, 25165824, 302.3, 32768, 128,
     76.3},
    {WORK_NORM_BACKWARD, WORK_RATE_LAYER_NORM_WEIGHTS, 12845056, 103.2, 8, 1024,
     212},
    {WORK_NORM_BACKWARD, WORK_RATE_LAYER_NORM_WEIGHTS, 25690112, 207.1, 25088,
     32, 53.8},
    {WORK_NORM_FORWARD, WORK_RATE_MOMENTS, 33554432, 134.2, 64, 512, 421},
    {WORK_NORM_FORWARD, WORK_RATE_MOMENTS, 65531904, 262.2, 4096, 512, 147},
    {WORK_NORM_FORWARD, WORK_RATE_BATCH_STATISTICS, 205520896, 411, 256, 512,
     694},
    {WORK_NORM_FORWARD, WORK_RATE_BATCH_TRANSFORM, 205520896, 822, 256, 512,
     456},
    {WORK_NORM_BACKWARD, WORK_RATE_BATCH_REDUCE, 102760448, 411, 2048, 512,
     161},
    {WORK_NORM_BACKWARD, WORK_RATE_BATCH_DATA, 205520896, 1233, 256, 512, 547},
    {WORK_NORM_FORWARD, WORK_RATE_CHANNEL_FORWARD, 51380224, 616.6, 64, 512,
     461},
    {WORK_NORM_BACKWARD, WORK_RATE_CHANNEL_BACKWARD, 51380224, 1027.6, 64, 512,
     1177},
    {WORK_NORM_FORWARD, WORK_RATE_WEIGHT_NORM, 4718592, 56.6, 8, 1024, 344},
    {WORK_NORM_BACKWARD, WORK_RATE_WEIGHT_NORM_DATA, 4718592, 94.4, 8, 1024,
     406},
    {WORK_SOFTMAX_FORWARD, WORK_RATE_LONG_SOFTMAX, 411705344, 3293.6, 8192,
     1024, 1482},
    {WORK_SOFTMAX_BACKWARD, WORK_RATE_LONG_SOFTMAX_DATA, 411705344, 4940.5,
     8192, 512, 1741},
    {WORK_ELEMENTWISE, WORK_RATE_DROPOUT, 25165824, 125.8, 1056, 256, 43.9},
    {WORK_STRIDED, WORK_RATE_CAST, 411705344, 2470, 804112, 128, 1170},
    {WORK_STRIDED, WORK_RATE_CAST_PAIR, 100663296, 1006.6, 196608, 128, 388},
    {WORK_STRIDED, WORK_RATE_CAT_WIDE, 100663296, 805.3, 8448, 128, 200},
    {WORK_POOL, WORK_RATE_POOL, 51380224, 924.8, 7168, 1024, 823},
    {WORK_POOL, WORK_RATE_POOL_DATA, 205520896, 924.8, 28672, 1024, 1826},
    {WORK_INDEX, WORK_RATE_GATHER_ROWS, 3478608, 8.7, 217413, 32, 132},
    {WORK_INDEX, WORK_RATE_SEGMENTS, 25165824, 100.9, 36044, 768, 208},
    {WORK_INDEX, WORK_RATE_BOXES, 8658, 0.01, 1, 64, 2820},
    {WORK_ELEMENTWISE, WORK_RATE_GELU, 51642368, 206.6, 50432, 128, 69.8},
    {WORK_ELEMENTWISE, WORK_RATE_GELU, 6119424, 24.5, 5976, 128, 8.5},
    {WORK_ELEMENTWISE, WORK_RATE_GELU_DATA, 51642368, 309.9, 50432, 128, 93.4},
    {WORK_ELEMENTWISE, WORK_RATE_GELU_TANH, 18874368, 75.5, 18432, 128, 23.5},
    {WORK_ELEMENTWISE, WORK_RATE_GELU_TANH_DATA, 18874368, 113.2, 18432, 128,
     30.3},
    {WORK_ELEMENTWISE, WORK_RATE_NORMAL_NUMBERS, 38535168, 154.1, 1056, 256,
     90.6},
};

TEST(kernels_take_what_an_h200_took)
{
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        struct work work = kernel(
            measured[i].family, measured[i].rate, measured[i].elements,
            1e6 * measured[i].mbytes, measured[i].blocks, measured[i].threads);
        struct cost_answer answer = price("h200", &work);

        CHECK_NEAR((double)answer.ns / 1e3, measured[i].us, 0.2);
        CHECK((double)answer.low_ns / 1e3 < measured[i].us);
        CHECK((double)answer.high_ns / 1e3 > measured[i].us);
        CHECK_UINT(answer.basis, COST_BORROWED);
    }
}

static double sum_us(uint64_t elements, uint64_t stride, uint64_t blocks,
                     uint32_t threads, uint64_t partials)
{
    struct work work = kernel(
        WORK_REDUCE, stride > 1 ? WORK_RATE_SUM_OUTER : WORK_RATE_SUM_INNER,
        elements, 2 * (double)elements, blocks, threads);

    work.rows.stride = stride;
    work.rows.partials = partials;
    return us("h200", &work);
}

/* A bias's gradient: what the blocks of few columns leave for the last one. */
TEST(sums_wait_for_their_last_block)
{
    CHECK_NEAR(sum_us(25690112, 128, 2112, 128, 528), 135, 0.2);
    CHECK_NEAR(sum_us(12845056, 256, 1568, 128, 196), 57, 0.2);
    CHECK_NEAR(sum_us(100663296, 3072, 2112, 128, 22), 69.9, 0.2);
    CHECK_NEAR(sum_us(3211264, 1, 64, 512, 0), 21.4, 0.2);
}

/* The last block's threads read one each, where rows are contiguous. */
TEST(partial_sums_of_contiguous_rows_are_read_together)
{
    struct work work = kernel(WORK_REDUCE, WORK_RATE_SUM_INNER, 1572864,
                              6291456, 192, 512);

    work.rows.stride = 1;
    work.rows.partials = 192;
    double many = us("h200", &work);
    work.rows.partials = 2;
    CHECK_NEAR(us("h200", &work), many, 1e-9);
    work.rows.stride = 1024;
    double two = us("h200", &work);
    work.rows.partials = 192;
    CHECK(us("h200", &work) > two + 40);
}

/* Six jobs of an H200: a kernel of two blocks, and one of 28 MB in the cache
 * (gemma2's casts), and of 113 MB, which are not. */
TEST(contiguous_kernels_start_in_a_microsecond)
{
    struct work work =
        kernel(WORK_ELEMENTWISE, WORK_RATE_NONE, 2048, 24576, 2, 128);

    CHECK_NEAR(us("h200", &work), 1.0, 0.25);
    CHECK_NEAR(us("h100", &work), 1.0, 0.25);
    work.elements = 4718592;
    work.read_bytes = 28311552;
    CHECK_NEAR(us("h200", &work), 5.8, 0.15);
    work.elements = 18874368;
    work.read_bytes = 113246208;
    CHECK_NEAR(us("h200", &work), 26, 0.1);
}

/* In 32 bits the memory bounds the same arithmetic. */
TEST(bytes_bound_what_has_more_of_them)
{
    struct work half = kernel(WORK_ELEMENTWISE, WORK_RATE_GELU, 65531904, 262e6,
                              63996, 128);
    struct work whole = half, plain;

    whole.read_bytes *= 2;
    plain = whole;
    plain.rate = WORK_RATE_NONE;
    CHECK(us("h200", &half) > 80);
    CHECK_NEAR(us("h200", &whole), us("h200", &plain), 1e-9);
    CHECK_NEAR(us("h200", &whole), 122, 0.05); /* as on that card */
}

/* Another memory changes what the memory bounds, and nothing else. */
TEST(a_slower_memory_costs_what_waits_for_it)
{
    struct work few =
        kernel(WORK_NORM_FORWARD, WORK_RATE_MOMENTS, 33554432, 134e6, 64, 512);
    struct work wide =
        kernel(WORK_STRIDED, WORK_RATE_CAT_WIDE, 100663296, 805e6, 8448, 128);

    CHECK_NEAR(us("h100", &few), us("h200", &few), 0.01);
    CHECK_NEAR(us("h100", &wide), us("h200", &wide) * 4800 / 3350, 0.02);
}

static struct work convolution(enum work_family family, enum work_type type,
                               enum work_layout layout, uint64_t n, uint64_t c,
                               uint64_t side, uint64_t k, uint64_t filter)
{
    uint32_t bytes = type == WORK_TF32 ? 4 : 2;
    double in = (double)(n * c * side * side), out = in / (double)c * (double)k;

    return (struct work){
        .family = family,
        .type = type,
        .source = WORK_EXACT,
        .element_bytes = bytes,
        .flops = 2 * out * (double)(c * filter * filter),
        .read_bytes = bytes * in,
        .written_bytes = bytes * out,
        .convolution = {.n = n,
                        .c = c,
                        .h = side,
                        .w = side,
                        .k = k,
                        .d = 1,
                        .t = 1,
                        .r = filter,
                        .s = filter,
                        .stride_h = 1,
                        .stride_w = 1,
                        .groups = 1,
                        .out_h = side,
                        .out_w = side,
                        .layout = layout},
    };
}

static struct work depthwise(enum work_family family, uint64_t c, uint64_t side)
{
    struct work work =
        convolution(family, WORK_BF16, WORK_NHWC, 64, c, side, c, 7);

    work.flops /= (double)c;
    work.convolution.groups = c;
    return work;
}

TEST(convolutions_take_what_an_h200_took)
{
    struct work work = depthwise(WORK_CONVOLUTION_FORWARD, 512, 14);

    CHECK_NEAR(us("h200", &work), 61.4, 0.15);
    CHECK_NEAR(us("h100", &work), 61.4, 0.15); /* not by its fp32 times */
    work = depthwise(WORK_CONVOLUTION_DGRAD, 512, 14);
    CHECK_NEAR(us("h200", &work), 107, 0.15);
    work = depthwise(WORK_CONVOLUTION_WGRAD, 128, 56);
    CHECK_NEAR(us("h200", &work), 148, 0.4);
    work = convolution(WORK_CONVOLUTION_FORWARD, WORK_TF32, WORK_NCHW, 4, 256,
                       232, 256, 3); /* 200 x 272 */
    CHECK_NEAR(us("h200", &work), 875, 0.2);
    work = convolution(WORK_CONVOLUTION_FORWARD, WORK_BF16, WORK_NHWC, 256, 64,
                       56, 256, 1);
    CHECK_NEAR(us("h200", &work), 180, 0.3);
}

/* Few pixels: a small tile goes over all channels, and transposes have floors;
 * filters of many channels are transposed, too. */
TEST(small_convolutions_take_what_an_h200_took)
{
    struct work work = convolution(WORK_CONVOLUTION_FORWARD, WORK_TF32,
                                   WORK_NCHW, 4, 256, 15, 256, 3); /* 13 x 17 */

    CHECK_NEAR(us("h200", &work), 21.0, 0.15);
    work = convolution(WORK_CONVOLUTION_FORWARD, WORK_TF32, WORK_NCHW, 64, 512,
                       7, 512, 3);
    CHECK_NEAR(us("h200", &work), 74.3, 0.1);
    work = convolution(WORK_CONVOLUTION_FORWARD, WORK_TF32, WORK_NCHW, 4, 256,
                       58, 12, 1); /* 50 x 68 */
    CHECK_NEAR(us("h200", &work), 7.1, 0.25);
}

/* An H100 has six times of TF32 convolutions, of which a roofline errs more
 * than the rule does: ScalingIntelligence/KernelBench, level 1. */
TEST(a_rule_goes_before_a_fit_that_errs_more)
{
    struct work work = convolution(WORK_CONVOLUTION_FORWARD, WORK_TF32,
                                   WORK_NCHW, 16, 64, 1024, 128, 1);

    CHECK_NEAR(us("h100", &work), 4660, 0.05);
    CHECK(price("h100", &work).basis == COST_BORROWED);
}

/* Three channels of 1 x 1 are a product, not padded pixel by pixel. */
TEST(products_of_three_channels_take_their_bytes)
{
    struct work work = convolution(WORK_CONVOLUTION_FORWARD, WORK_TF32,
                                   WORK_NCHW, 10, 3, 224, 64, 1);
    double bytes = work.read_bytes + work.written_bytes;

    CHECK(us("h100", &work) < 1.5e-3 * bytes / 3350);
}

/* PyTorch's own kernel, the same times: 3 x 3 of 128 channels, 256 x 512. */
TEST(depthwise_in_32_bits_finds_places_and_loads)
{
    struct work work = convolution(WORK_CONVOLUTION_FORWARD, WORK_TF32,
                                   WORK_NCHW, 64, 128, 360, 128, 3);

    work.type = WORK_FP32;
    work.convolution.groups = 128;
    work.flops /= 128;
    work.elements = 64ul * 128 * 254 * 510;
    CHECK_NEAR(us("h100", &work), 10100, 0.05);
    work.elements = 32ul * 128 * 126 * 250;
    work.read_bytes = work.written_bytes = 4 * (double)work.elements;
    work.convolution.s = 7;
    CHECK_NEAR(us("h100", &work), 2270, 0.05);
}

/* A block for all rows: 16 turns of 256 threads. */
TEST(losses_take_turns)
{
    struct work work =
        kernel(WORK_INDEX, WORK_RATE_LOSS, 4096, 49152, 1, 256);

    CHECK_NEAR(us("h200", &work), 18.6, 0.05);
    work.rate = WORK_RATE_LOSS_DATA;
    CHECK_NEAR(us("h200", &work), 9.9, 0.1);
    work.elements = 64;
    work.threads = 32;
    CHECK_NEAR(us("h200", &work), 1.7, 0.3);
}

/* The first layer of a ResNet: 7 x 7, stride 2. */
TEST(three_channels_are_padded)
{
    struct work work = convolution(WORK_CONVOLUTION_FORWARD, WORK_BF16,
                                   WORK_NHWC, 256, 3, 224, 64, 7);

    work.flops /= 4;
    work.written_bytes /= 4;
    work.convolution.out_h = work.convolution.out_w = 112;
    work.convolution.stride_h = work.convolution.stride_w = 2;
    CHECK_NEAR(us("h200", &work), 1752, 0.15);
    work.family = WORK_CONVOLUTION_WGRAD;
    CHECK_NEAR(us("h200", &work), 1107, 0.2);
}

/* wav2vec2's positions: a few blocks for each group, on eight streams. What the
 * call takes of its own stream counts, not the sum of its kernels. */
TEST(rows_in_groups_leave_most_of_the_gpu_idle)
{
    static const double took_us[] = {12234, 881, 258};
    struct work work =
        convolution(WORK_CONVOLUTION_FORWARD, WORK_BF16, WORK_NCHW, 8, 768, 1,
                    768, 1);

    work.flops = 18874368e3;
    work.convolution.groups = 16;
    work.convolution.s = 128;
    work.convolution.w = 249;
    work.convolution.out_w = 250;
    for (int pass = 0; pass < 3; pass++) {
        work.family = WORK_CONVOLUTION_FORWARD + pass;
        CHECK_NEAR(us("h200", &work), took_us[pass], 0.05);
        CHECK_NEAR(us("h100", &work), took_us[pass], 0.05);
    }
    work.convolution.groups = 1; /* tensor cores, all at once */
    work.family = WORK_CONVOLUTION_FORWARD;
    CHECK(us("h200", &work) < 1000);
}

static double product_us(enum work_type type, uint64_t m, uint64_t n,
                         uint64_t k, bool transpose_a, bool transpose_b)
{
    uint32_t bytes = type == WORK_TF32 ? 4 : 2;
    struct work work = {
        .family = WORK_GEMM,
        .type = type,
        .source = WORK_EXACT,
        .element_bytes = bytes,
        .flops = 2 * (double)m * (double)n * (double)k,
        .read_bytes = bytes * (double)k * (double)(m + n),
        .written_bytes = bytes * (double)m * (double)n,
        .gemm = {.m = m,
                 .n = n,
                 .k = k,
                 .batch = 1,
                 .transpose_a = transpose_a,
                 .transpose_b = transpose_b},
    };

    return us("h200", &work);
}

TEST(layouts_of_products_cost_what_an_h200_took)
{
    CHECK_NEAR(product_us(WORK_BF16, 8192, 50257, 768, 0, 1), 6636, 0.1);
    CHECK_NEAR(product_us(WORK_BF16, 8192, 768, 50257, 0, 0), 4497, 0.1);
    CHECK_NEAR(product_us(WORK_BF16, 4096, 30522, 768, 0, 1), 807, 0.1);
    CHECK_NEAR(product_us(WORK_TF32, 8192, 50257, 768, 0, 1), 4895, 0.1);
    CHECK_NEAR(product_us(WORK_TF32, 768, 2304, 8192, 1, 0), 157, 0.15);
    CHECK_NEAR(product_us(WORK_TF32, 8192, 768, 3072, 0, 0), 120, 0.15);
}

TEST(dropout_costs_attention_its_random_numbers)
{
    struct work work = {
        .family = WORK_ATTENTION_FORWARD,
        .type = WORK_BF16,
        .source = WORK_EXACT,
        .element_bytes = 2,
        .flops = 2.0 * 8 * 12 * 1024 * 1024 * 64,
        .attention = {.batch = 8,
                      .heads = 12,
                      .kv_heads = 12,
                      .queries = 1024,
                      .keys = 1024,
                      .head_size = 64,
                      .value_size = 64,
                      .causal = true,
                      .kernel = WORK_ATTENTION_CUDNN},
    };
    double plain = us("h200", &work);

    work.attention.dropout = true;
    CHECK_NEAR(us("h200", &work) - plain, 53.5, 0.1);
    CHECK_NEAR(us("h200", &work), 103.5, 0.25);
}

static double plain_us(unsigned batch, bool backward)
{
    const struct work work = {
        .family = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION_FORWARD,
        .type = WORK_FP32,
        .source = WORK_EXACT,
        .element_bytes = 4,
        .attention = {.batch = batch,
                      .heads = 12,
                      .kv_heads = 12,
                      .queries = 1024,
                      .keys = 1024,
                      .head_size = 64,
                      .value_size = 64,
                      .causal = true,
                      .dropout = true,
                      .kernel = WORK_ATTENTION_EFFICIENT}};

    return us("h200", &work);
}

/* GPT-2 in fp32, whose longest blocks may begin last. */
TEST(memory_efficient_attention_in_fp32_takes_what_an_h200_took)
{
    CHECK_NEAR(plain_us(4, false), 376.6, 0.03);
    CHECK_NEAR(plain_us(8, false), 640.9, 0.03);
    CHECK_NEAR(plain_us(4, true), 731.8, 0.03);
    CHECK_NEAR(plain_us(8, true), 1300.3, 0.03);
}

/* What cuDNN's attention took in the jobs of one H200, but for heads of 256,
 * and in FlashAttention-3's figures of an H100; us. */
static const struct attended {
    const char *gpu;
    unsigned batch, heads, kv_heads, tokens, size;
    bool causal, dropout, bias;
    double forward, backward; /* 0: not known */
} attended[] = {
    {"h200", 4, 8, 8, 256, 64, true, false, false, 6.0, 17.3},
    {"h200", 1, 32, 8, 4096, 64, true, false, false, 184, 508},
    {"h200", 2, 32, 8, 2048, 64, true, false, false, 100, 306},
    {"h200", 64, 16, 16, 197, 64, false, false, false, 60.2, 202},
    {"h200", 32, 12, 12, 128, 64, false, true, false, 16.9, 41.1},
    {"h200", 32, 12, 12, 1024, 64, true, true, false, 350, 620},
    {"h200", 8, 12, 12, 1024, 64, true, true, false, 103, 177},
    {"h200", 16, 12, 12, 512, 64, false, true, true, 121, 202},
    {"h200", 8, 12, 12, 249, 64, false, true, false, 18.5, 35.1},
    {"h200", 2, 8, 8, 128, 32, true, true, false, 7.1, 12.3},
    {"h100-sxm-80gb", 32, 32, 32, 512, 64, false, false, false, 205, 646},
    {"h100-sxm-80gb", 4, 32, 32, 4096, 64, false, false, false, 1347, 3296},
    {"h100-sxm-80gb", 8, 32, 32, 2048, 64, true, false, false, 412, 0},
    {"h100-sxm-80gb", 32, 16, 16, 512, 128, false, false, false, 138, 563},
    {"h100-sxm-80gb", 2, 16, 16, 8192, 128, false, false, false, 1833, 5307},
    {"h100-sxm-80gb", 4, 8, 8, 4096, 256, true, false, false, 569, 0},
};

static double attention_us(const struct attended *a, bool backward)
{
    const struct work_attention_shape shape = {.batch = a->batch,
                                               .heads = a->heads,
                                               .kv_heads = a->kv_heads,
                                               .queries = a->tokens,
                                               .keys = a->tokens,
                                               .head_size = a->size,
                                               .value_size = a->size,
                                               .causal = a->causal,
                                               .dropout = a->dropout,
                                               .bias = a->bias,
                                               .kernel = WORK_ATTENTION_CUDNN};
    const struct work work = {
        .family = backward ? WORK_ATTENTION_BACKWARD : WORK_ATTENTION_FORWARD,
        .type = WORK_BF16,
        .source = WORK_EXACT,
        .element_bytes = 2,
        .attention = shape};

    return us(a->gpu, &work);
}

TEST(attention_of_cudnn_is_priced_tile_by_tile)
{
    double sum = 0;
    unsigned count = 0;

    for (size_t i = 0; i < sizeof attended / sizeof *attended; i++)
        for (int backward = 0; backward < 2; backward++) {
            const struct attended *a = &attended[i];
            double real = backward ? a->backward : a->forward;
            if (!(real > 0))
                continue;
            double ours = attention_us(a, backward);
            CHECK_NEAR(ours, real, 0.2);
            sum += fabs(ours / real - 1);
            count++;
        }
    CHECK(sum / count < 0.07);
}
