/* SPDX-License-Identifier: Apache-2.0
 * Prices of operations: rooflines, limits, names. */
#include "check.h"
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/trace/trace.h"
#include "runtime/cost/cost_features.h"
#include "runtime/cost/cost_memo.h"

static struct cost_gpu h100(void)
{
    struct gpu gpu;
    struct cost_gpu limits;
    struct err err = {""};

    if (gpu_load("h100", &gpu, &err))
        CHECK_FAIL("%s", err.text);
    cost_gpu_set(&gpu, &limits);
    return limits;
}

static struct work gemm(double m, double n, double k, enum work_type type)
{
    return (struct work){
        .family = WORK_GEMM,
        .type = type,
        .source = WORK_EXACT,
        .element_bytes = 2,
        .flops = 2 * m * n * k,
        .read_bytes = 2 * (m * k + k * n),
        .written_bytes = 2 * m * n,
        .gemm = {.m = (uint64_t)m,
                 .n = (uint64_t)n,
                 .k = (uint64_t)k,
                 .batch = 1},
    };
}

TEST(limits_come_from_the_catalogue)
{
    struct cost_gpu gpu = h100();

    CHECK_NEAR(gpu.memory_gbps, 3350, 0);
    CHECK_NEAR(gpu.tflops[WORK_BF16], 989.4, 0);
    CHECK_UINT(gpu.sm_count, 132);
    CHECK_UINT(gpu.capability, 90);
    CHECK(gpu.pcie_gbps > 50 && gpu.pcie_gbps < 63);
}

TEST(a_product_is_bound_by_arithmetic)
{
    struct cost_gpu gpu = h100();
    struct work work = gemm(8192, 8192, 8192, WORK_BF16);
    struct cost_answer answer;
    double peak_ns = 2 * 8192.0 * 8192 * 8192 / 989.4e3;

    cost_price(NULL, &gpu, &work, &answer);
    CHECK_NEAR(cost_bound_ns(&gpu, &work), peak_ns, 1e-9);
    CHECK(answer.ns > peak_ns);
    CHECK(answer.ns < 2 * peak_ns);
    CHECK(answer.low_ns <= answer.ns && answer.ns <= answer.high_ns);
    CHECK_STR(cost_basis_name(answer.basis), "roofline");
}

/* LAYERS of an LSTM of 256 cells and inputs, 10 sequences. */
static struct work lstm(uint64_t steps, uint64_t layers, uint32_t directions,
                        enum work_pass pass)
{
    return (struct work){
        .family = WORK_OTHER,
        .type = WORK_FP32,
        .source = WORK_EXACT,
        .element_bytes = 4,
        .is_recurrent = true,
        .recurrent = {.tokens = 10 * steps,
                      .steps = steps,
                      .input = 256,
                      .hidden = 256,
                      .layers = layers,
                      .directions = directions,
                      .gates = 4,
                      .type_bytes = 4,
                      .pass = pass},
    };
}

static double lstm_ns(uint64_t steps, uint64_t layers, uint32_t directions,
                      enum work_pass pass)
{
    struct cost_gpu gpu = h100();
    struct work work = lstm(steps, layers, directions, pass);
    struct cost_answer answer;

    cost_price(NULL, &gpu, &work, &answer);
    CHECK_UINT(answer.basis, COST_ROOFLINE); /* of its products */
    CHECK(answer.low_ns < answer.ns && answer.ns < answer.high_ns);
    return (double)answer.ns;
}

/* With one step no product is larger than another: what is left of a longer
 * chain, layer by layer, are its steps. */
TEST(steps_of_a_recurrent_network_follow_each_other)
{
    double one = lstm_ns(100, 1, 1, WORK_PASS_FORWARD);
    double longer = lstm_ns(1100, 1, 1, WORK_PASS_FORWARD);
    double weights = lstm_ns(1100, 1, 1, WORK_PASS_WEIGHTS);

    CHECK(longer - one > 1000.0 * 2 * COST_LAUNCH_NS);
    CHECK(longer - one < 1000.0 * 4 * COST_LAUNCH_NS);
    CHECK_NEAR(lstm_ns(100, 3, 1, WORK_PASS_FORWARD), 3 * one, 1e-3);
    CHECK(lstm_ns(100, 1, 2, WORK_PASS_FORWARD) > 1.99 * one);
    CHECK(lstm_ns(1100, 1, 1, WORK_PASS_DATA) > 1000.0 * 2 * COST_LAUNCH_NS);
    CHECK(weights < longer / 20); /* products alone */
}

/* Large steps are not bound by their launches. */
TEST(a_large_step_of_a_recurrent_network_is_a_product)
{
    struct cost_gpu gpu = h100();
    struct work work = lstm(1, 1, 1, WORK_PASS_FORWARD);
    struct work product = gemm(4096, 4 * 4096, 4096, WORK_FP32);
    struct cost_answer answer, of;

    work.recurrent.tokens = 4096;
    work.recurrent.input = work.recurrent.hidden = 4096;
    product.element_bytes = 4;
    product.read_bytes *= 2;
    product.written_bytes *= 2;
    cost_price(NULL, &gpu, &work, &answer);
    cost_price(NULL, &gpu, &product, &of);
    CHECK_NEAR((double)answer.ns, 2 * (double)of.ns, 0.1);
}

/* tf32 on a GPU that lacks it is fp32, for its models too. */
TEST(a_recurrent_network_in_tf32_runs_in_fp32_where_there_is_none)
{
    struct cost_gpu gpu = h100();
    struct work work = lstm(100, 1, 1, WORK_PASS_WEIGHTS);
    struct cost_answer plain, tf32;

    gpu.tflops[WORK_TF32] = 0;
    cost_price(NULL, &gpu, &work, &plain);
    work.type = WORK_TF32;
    cost_price(NULL, &gpu, &work, &tf32);
    CHECK_UINT(tf32.ns, plain.ns);
}

TEST(lengths_without_end_do_no_harm)
{
    struct cost_gpu gpu = h100();
    struct work work = lstm(INT32_MAX, INT32_MAX, 2, WORK_PASS_FORWARD);
    struct cost_answer answer;

    cost_price(NULL, &gpu, &work, &answer);
    CHECK(answer.low_ns <= answer.ns && answer.ns <= answer.high_ns);
}

TEST(what_is_not_described_is_a_fallback)
{
    struct cost_gpu gpu = h100();
    struct work work = {
        .family = WORK_OTHER, .source = WORK_GUESSED, .read_bytes = 1e9};
    struct cost_answer answer;

    cost_price(NULL, &gpu, &work, &answer);
    CHECK_UINT(answer.basis, COST_FALLBACK);
    CHECK(answer.ns > 1e9 / 3350);
}

TEST(nothing_takes_no_time)
{
    struct cost_gpu gpu = h100();
    struct work work = {.family = WORK_NOTHING};
    struct cost_answer answer;

    cost_price(NULL, &gpu, &work, &answer);
    CHECK_UINT(answer.ns, 0);
}

TEST(a_copy_from_the_host_goes_over_pcie)
{
    struct cost_gpu gpu = h100();
    struct work work = {.family = WORK_COPY,
                        .source = WORK_EXACT,
                        .direction = TRACE_HOST_TO_DEVICE,
                        .pinned = true,
                        .read_bytes = 1e9,
                        .written_bytes = 1e9};
    struct cost_answer pinned, pageable;

    cost_price(NULL, &gpu, &work, &pinned);
    work.pinned = false;
    cost_price(NULL, &gpu, &work, &pageable);
    CHECK(pinned.ns > 1e9 / 63 && pinned.ns < 1e9 / 40);
    CHECK(pageable.ns > pinned.ns);
}

TEST(a_type_that_the_card_lacks_is_priced)
{
    struct cost_gpu gpu = h100();
    struct work work = gemm(4096, 4096, 4096, WORK_BF16);
    struct cost_answer answer;

    gpu.tflops[WORK_BF16] = 0;
    cost_price(NULL, &gpu, &work, &answer);
    CHECK_NEAR(cost_bound_ns(&gpu, &work), work.flops / 66.9e3, 1e-9);
}

TEST(prices_are_remembered)
{
    static struct cost_memo memo;
    struct cost_gpu gpu = h100();
    struct cost_answer first, again, plain;

    for (int i = 0; i < 5000; i++) {
        struct work work = gemm(64 + i, 128, 256, WORK_BF16);

        cost_price(NULL, &gpu, &work, &plain);
        cost_memo_price(&memo, NULL, &gpu, &work, &first);
        cost_memo_price(&memo, NULL, &gpu, &work, &again);
        if (first.ns != plain.ns || again.ns != plain.ns ||
            again.basis != plain.basis)
            CHECK_FAIL("%d: %" PRIu64 ", %" PRIu64 ", %" PRIu64, i, plain.ns,
                       first.ns, again.ns);
    }
}

static struct work convolution(uint64_t channels, uint64_t groups,
                               enum work_type type)
{
    double out = 32.0 * 56 * 56 * (double)channels;

    return (struct work){.family = WORK_CONVOLUTION_FORWARD,
                         .type = type,
                         .source = WORK_EXACT,
                         .flops = 2 * out * (double)(channels / groups) * 9,
                         .read_bytes = 4 * out,
                         .written_bytes = 4 * out,
                         .convolution = {.n = 32,
                                         .c = channels,
                                         .h = 56,
                                         .w = 56,
                                         .k = channels,
                                         .d = 1,
                                         .t = 1,
                                         .r = 3,
                                         .s = 3,
                                         .groups = groups,
                                         .out_h = 56,
                                         .out_w = 56}};
}

TEST(a_depthwise_convolution_has_no_tensor_cores)
{
    struct cost_gpu gpu = h100();
    struct work half = convolution(256, 256, WORK_FP16);
    struct work single = convolution(256, 256, WORK_TF32);
    struct work grouped = convolution(256, 32, WORK_FP16);
    struct cost_answer a, b;

    CHECK_UINT(work_variant(&half), 1);
    CHECK_UINT(work_variant(&grouped), 0);
    CHECK_STR(work_variant_name(WORK_CONVOLUTION_WGRAD, 1), "depthwise");
    CHECK(!work_variant_name(WORK_NORM_FORWARD, 0));
    cost_price(NULL, &gpu, &half, &a);
    cost_price(NULL, &gpu, &single, &b);
    CHECK_UINT(a.ns, b.ns);
    CHECK((double)a.ns > half.flops / 3e3);
}

static struct work elementwise(enum work_family family, uint32_t load_bytes)
{
    return (struct work){.family = family,
                         .type = WORK_FP16,
                         .source = WORK_RULE,
                         .element_bytes = 2,
                         .elements = 1 << 28,
                         .flops = 1 << 28,
                         .read_bytes = 2.0 * (1 << 28),
                         .written_bytes = 2.0 * (1 << 28),
                         .load_bytes = load_bytes};
}

TEST(kernels_that_load_one_by_one_are_bound_by_elements)
{
    struct cost_gpu gpu = h100();
    struct work wide = elementwise(WORK_ELEMENTWISE, 16);
    struct work strided = elementwise(WORK_STRIDED, 0);
    struct cost_answer fast, slow, more;

    cost_price(NULL, &gpu, &wide, &fast);
    cost_price(NULL, &gpu, &strided, &slow);
    CHECK(slow.ns > fast.ns * 3 / 2);
    strided.read_bytes *= 1.1; /* 10% more bytes of as many elements */
    cost_price(NULL, &gpu, &strided, &more);
    CHECK_UINT(more.ns, slow.ns);
}

/* 20 of an H100's 50 MiB of L2 hold a kernel's bytes; of ten times as many, 25
 * MiB come from there. */
TEST(elementwise_kernels_find_small_tensors_in_the_cache)
{
    struct cost_gpu gpu = h100();
    struct work work = {.family = WORK_ELEMENTWISE,
                        .source = WORK_RULE,
                        .read_bytes = 10 << 20,
                        .written_bytes = 10 << 20};
    const struct cost_roofline *line = cost_roofline_default(&work);
    double bytes = 20 << 20, l2 = 13 * 132 * 1e-3 * gpu.clock_mhz;
    double memory = gpu.memory_gbps * line->memory;

    CHECK_NEAR(cost_roofline_ns(line, &gpu, &work), line->floor_ns + bytes / l2,
               1e-9);
    work.read_bytes = work.written_bytes = 100 << 20;
    bytes = 200 << 20;
    double near = gpu.l2_bytes / 2;
    CHECK_NEAR(cost_roofline_ns(line, &gpu, &work),
               line->floor_ns + near / l2 + (bytes - near) / memory, 1e-9);
    work.family = WORK_SOFTMAX_FORWARD;
    line = cost_roofline_default(&work);
    CHECK_NEAR(cost_roofline_ns(line, &gpu, &work),
               line->floor_ns + bytes / (gpu.memory_gbps * line->memory), 1e-9);
}

/* Its kernels follow each other: what bytes take comes to what products take.
 */
TEST(backward_attention_adds_its_kernels)
{
    struct cost_gpu gpu = h100();
    struct work work = {.family = WORK_ATTENTION_BACKWARD,
                        .type = WORK_BF16,
                        .source = WORK_EXACT,
                        .read_bytes = 5 * (64 << 20),
                        .written_bytes = 3 * (64 << 20),
                        .attention = {.batch = 32,
                                      .heads = 16,
                                      .kv_heads = 16,
                                      .queries = 512,
                                      .keys = 512,
                                      .head_size = 128,
                                      .value_size = 128}};
    struct cost_roofline line = {8000, 0.5, 0.5, 0};
    double flops = 2.5 * 4 * 32 * 16 * 512 * 512 * 128.0;
    double products = flops / (1e3 * gpu.tflops[WORK_BF16] * line.compute);
    double bytes = 8.0 * (64 << 20) / (gpu.memory_gbps * line.memory);

    CHECK_NEAR(cost_roofline_ns(&line, &gpu, &work),
               line.floor_ns + products + bytes, 0.02);
    work.family = WORK_ATTENTION_FORWARD;
    CHECK_NEAR(cost_roofline_ns(&line, &gpu, &work),
               line.floor_ns + fmax(products / 2.5, bytes), 0.02);
}

TEST(geforce_gpus_run_above_their_boost_clock)
{
    struct work work = gemm(8192, 8192, 8192, WORK_FP16);
    struct cost_gpu limits;
    struct gpu gpu;
    struct err err = {""};

    if (gpu_load("rtx-3090", &gpu, &err))
        CHECK_FAIL("%s", err.text);
    cost_gpu_set(&gpu, &limits);
    double peak_ns = work.flops / (1e3 * limits.tflops[WORK_FP16]);
    CHECK(cost_bound_ns(&limits, &work) < peak_ns);
    CHECK(cost_bound_ns(&limits, &work) > 0.8 * peak_ns);
}

TEST(winograd_may_go_below_the_peak)
{
    struct cost_gpu gpu = h100();
    struct work work = convolution(512, 1, WORK_FP32);

    CHECK_NEAR(cost_bound_ns(&gpu, &work), work.flops / 4 / 66.9e3, 1e-9);
}

TEST(the_memory_efficient_kernels_are_slower_than_flash_attention)
{
    struct cost_gpu gpu = h100();
    struct work work = {.family = WORK_ATTENTION_FORWARD,
                        .type = WORK_BF16,
                        .source = WORK_EXACT,
                        .attention = {.batch = 4,
                                      .heads = 32,
                                      .kv_heads = 32,
                                      .queries = 4096,
                                      .keys = 4096,
                                      .head_size = 128,
                                      .value_size = 128,
                                      .causal = true}};
    struct cost_answer flash, efficient;

    cost_price(NULL, &gpu, &work, &flash);
    work.attention.kernel = WORK_ATTENTION_EFFICIENT;
    cost_price(NULL, &gpu, &work, &efficient);
    CHECK(efficient.ns > 2 * flash.ns);
}

/* 8 heads of one query each share keys: one tile instead of eight. */
TEST(query_heads_that_share_keys_are_packed_into_a_tile)
{
    struct work_attention_shape one = {.batch = 2,
                                       .heads = 8,
                                       .kv_heads = 1,
                                       .queries = 1,
                                       .keys = 1024,
                                       .head_size = 128,
                                       .value_size = 128};
    struct work_attention_shape own = one, many = one;

    own.kv_heads = 8;
    CHECK_NEAR(cost_attention_flops(&own), 8 * cost_attention_flops(&one), 0);
    many.queries = 128; /* fills its tiles without */
    own.queries = 128;
    CHECK_NEAR(cost_attention_flops(&own), cost_attention_flops(&many), 0);
    many.queries = own.queries = 64;
    many.kernel = own.kernel = WORK_ATTENTION_FLASH3;
    CHECK_NEAR(cost_attention_flops(&own), cost_attention_flops(&many), 0);
    many.queries = own.queries = 16;
    CHECK_NEAR(cost_attention_flops(&own), 4 * cost_attention_flops(&many), 0);
}

TEST(every_family_and_type_has_a_name)
{
    for (int i = 0; i < WORK_FAMILIES; i++) {
        CHECK(strcmp(work_family_name(i), "unknown"));
        CHECK_UINT(work_family_find(work_family_name(i)), i);
    }
    CHECK_UINT(work_family_find("foo"), WORK_OTHER);
    for (int i = 0; i < WORK_TYPES; i++)
        CHECK(strcmp(work_type_name(i), "unknown"));
    CHECK_STR(work_family_name(WORK_FAMILIES), "unknown");
}
