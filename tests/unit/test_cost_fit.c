/* SPDX-License-Identifier: Apache-2.0
 * Fits of operators: recovered from times of a known law, written, read and
 * evaluated; and what is wrong with a fit.
 * Slow: it fits some twenty times. */
#include "check.h"
#include "common/base/err.h"
#include "common/base/xmalloc.h"
#include "common/catalogue/gpu.h"
#include "fits/cost_build.h"
#include "fits/cost_fit.h"
#include "opfit/fit_ops.h"
#include "runtime/cost/cost_image.h"

static struct gpu load_gpu(const char *name)
{
    struct gpu gpu = {.name = ""};
    struct err err = {""};

    if (gpu_load(name, &gpu, &err))
        CHECK_FAIL("%s", err.text);
    return gpu;
}

static uint32_t draw_extent(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(64 + (*state >> 33) % 4096);
}

static struct work product(uint64_t m, uint64_t n, uint64_t k)
{
    double a = (double)(m * k), b = (double)(k * n), c = (double)(m * n);

    return (struct work){.family = WORK_GEMM,
                         .type = WORK_FP32,
                         .source = WORK_EXACT,
                         .element_bytes = 4,
                         .flops = 2 * a * (double)n,
                         .read_bytes = 4 * (a + b),
                         .written_bytes = 4 * c,
                         .gemm = {.m = m, .n = n, .k = k, .batch = 1}};
}

/* A table of COUNT products of GPU NAME whose times follow LINE, and a step
 * that no roofline has: odd k take ODD times as long. */
static void write_table_of(const char *path, const char *name, double odd,
                           const struct cost_roofline *line, int count)
{
    struct gpu gpu = load_gpu(name);
    struct cost_gpu limits;
    uint64_t state = 7;
    FILE *out = fopen(path, "w");

    cost_gpu_set(&gpu, &limits);
    fprintf(out,
            "# source: a law\n# gpu: %s\n# clock: sustained\n"
            "op,dtype,b,m,n,k,time_us\n",
            name);
    for (int i = 0; i < count; i++) {
        uint32_t m = draw_extent(&state), n = draw_extent(&state),
                 k = draw_extent(&state);
        struct work work = product(m, n, k);
        double ns = cost_roofline_ns(line, &limits, &work);

        fprintf(out, "mm,fp32,1,%u,%u,%u,%.6g\n", m, n, k,
                ns * (k % 2 ? odd : 1) / 1e3);
    }
    fclose(out);
}

static void write_table(const char *path, const struct cost_roofline *line,
                        int count)
{
    write_table_of(path, "h100", 1.5, line, count);
}

static void fit_table(const char *path, struct ops *ops, struct fit_ops *fit)
{
    struct gpu gpu = load_gpu("h100");
    struct cost_gpu limits;
    struct err err = {""};

    cost_gpu_set(&gpu, &limits);
    if (ops_read(path, ops, &err))
        CHECK_FAIL("%s", err.text);
    fit_ops_run(ops, gpu.name, &limits, 1, fit);
}

static char *fit_text(const struct fit_ops *fit)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    fit_ops_write(fit, out);
    fclose(out);
    return text;
}

static const struct cost_roofline law = {4000, 0.6, 0.7, 0};

TEST(trees_learn_what_a_roofline_cannot_say)
{
    struct ops ops = {0};
    struct fit_ops fit;
    char path[] = "/tmp/memsim-ops-XXXXXX";

    close(mkstemp(path));
    write_table(path, &law, 1200);
    fit_table(path, &ops, &fit);
    CHECK_UINT(fit.count, 1);
    CHECK_UINT(fit.models[0].kind, COST_TREES);
    CHECK(fit.models[0].errors.mape[COST_LINE] > 15);
    CHECK(fit.models[0].errors.mape[COST_TREES] < 3);
    fit_ops_free(&fit);
    ops_free(&ops);
    unlink(path);
}

/* The error of the trees of COUNT products of an H100, with as many of an A100
 * that another law holds for, or alone. */
static double trees_error(int count, bool with_others)
{
    struct gpu gpu = load_gpu("h100");
    struct cost_gpu limits;
    struct ops ops = {0};
    struct fit_ops fit;
    struct err err = {""};
    char path[] = "/tmp/memsim-ops-XXXXXX";

    close(mkstemp(path));
    write_table(path, &law, count);
    if (ops_read(path, &ops, &err))
        CHECK_FAIL("%s", err.text);
    write_table_of(path, "a100-sxm-80gb", 0.4, &law, count);
    if (with_others && ops_read(path, &ops, &err))
        CHECK_FAIL("%s", err.text);
    cost_gpu_set(&gpu, &limits);
    fit_ops_run(&ops, gpu.name, &limits, 1, &fit);
    double error = fit.models[0].errors.mape[COST_TREES];
    fit_ops_free(&fit);
    ops_free(&ops);
    unlink(path);
    return error;
}

static void check_with_others(int count)
{
    double with = trees_error(count, true), without = trees_error(count, false);

    if (!(with <= without))
        CHECK_FAIL("%g%% with another GPU, %g%% without", with, without);
}

/* Parts of 1010, on which trees are validated, are fewer than what does without
 * other GPUs. */
TEST(another_gpu_s_table_makes_no_large_fit_worse)
{
    check_with_others(1010);
}

TEST(another_gpu_s_table_makes_no_small_fit_worse)
{
    check_with_others(200);
}

TEST(a_fit_that_was_written_prices_as_the_fit)
{
    struct ops ops = {0};
    struct fit_ops fit, again;
    struct err err = {""};
    char path[] = "/tmp/memsim-ops-XXXXXX";

    close(mkstemp(path));
    write_table(path, &law, 300);
    fit_table(path, &ops, &fit);
    fit_ops_run(&ops, fit.gpu, &fit.limits, 1, &again);
    char *text = fit_text(&fit), *same = fit_text(&again);
    CHECK_STR(text, same);
    struct cost_image *image =
        cost_fit_load_text(text, strlen(text), "fit.json", &err);
    if (!image)
        CHECK_FAIL("%s", err.text);
    for (int i = 0; image && i < 50; i++) {
        struct work work = product(100 + 37 * i, 512, 301 + i);
        struct cost_answer answer;
        double ns = cost_trees_ns(fit.models[0].state, &fit.limits, &work, 0);

        cost_price(image, &fit.limits, &work, &answer);
        CHECK_UINT(answer.basis, COST_FITTED);
        CHECK(fabs((double)answer.ns - ns) <= 1);
        CHECK(answer.low_ns <= answer.ns && answer.ns <= answer.high_ns);
    }
    struct cost_answer measured;
    cost_price(image, &fit.limits, &ops.samples[0].work, &measured);
    CHECK_UINT(measured.basis, COST_MEASURED);
    CHECK(fabs((double)measured.ns - ops.samples[0].ns) <= 1);
    free(image);
    free(text);
    free(same);
    fit_ops_free(&fit);
    fit_ops_free(&again);
    ops_free(&ops);
    unlink(path);
}

static void check_refused(const char *text, const char *why)
{
    struct err err = {""};
    struct cost_image *image =
        cost_fit_load_text(text, strlen(text), "fit.json", &err);

    CHECK(!image);
    if (!strstr(err.text, why))
        CHECK_FAIL("\"%s\" does not say \"%s\"", err.text, why);
    free(image);
}

#define HEAD "{\"schema\":1,\"kind\":\"operators\",\"gpu\":\"h100-sxm-80gb\","
#define MODEL(band, rest)                                                      \
    HEAD "\"models\":[{\"family\":\"gemm\",\"types\":[\"fp32\"]," band         \
         "," rest "}]}"
#define BAND "\"low\":0.9,\"high\":1.1"
#define LINE "\"roofline\":{\"floor_ns\":1,\"compute\":0.5,\"memory\":0.5}"

TEST(what_is_wrong_with_a_fit_is_said)
{
    check_refused("{\"schema\":1}", "not a fit of operators");
    check_refused("{\"schema\":2,\"kind\":\"operators\"}", "another schema");
    check_refused(MODEL(BAND, "\"model\":\"oracle\""), "does not know");
    check_refused(MODEL(BAND, "\"model\":\"roofline\",\"roofline\":"
                              "{\"floor_ns\":-1,\"compute\":1,\"memory\":1}"),
                  "negative");
    check_refused(MODEL(BAND, "\"model\":\"roofline\",\"roofline\":"
                              "{\"floor_ns\":null,\"compute\":1}"),
                  "models[0]: floor_ns is missing or no number");
    check_refused(
        MODEL("\"low\":1.1,\"high\":1.2", "\"model\":\"roofline\"," LINE),
        "band");
    check_refused(MODEL(BAND, "\"model\":\"trees\"," LINE ",\"trees\":"
                              "{\"offset\":0,\"scale\":1,\"edges\":[[1,2]],"
                              "\"trees\":[[0,1,0]]}"),
                  "children");
    check_refused(MODEL(BAND, "\"model\":\"trees\"," LINE ",\"trees\":"
                              "{\"offset\":0,\"scale\":1,\"edges\":[[2,1]],"
                              "\"trees\":[[-1,5]]}"),
                  "ascend");
    static const char *const lists[] = {
        "7", "-1", "null", "[1]", "[[1,]]", "[[1 2]]", "[[inf]]", "[[0x1]]",
        "[[1]", "[[\"1\"]]", "[[1],2]", "{}",
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char text[500];
        snprintf(text, sizeof text,
                 MODEL(BAND, "\"model\":\"trees\"," LINE ",\"trees\":"
                             "{\"offset\":0,\"scale\":1,\"edges\":%s,"
                             "\"trees\":[[-1,5]]}"),
                 lists[i]);
        check_refused(text, strcmp(lists[i], "[[1]") ? "no lists of numbers"
                                                      : "no valid JSON");
    }
    check_refused(HEAD "\"table\":[[\"gemm\",\"fp32\",-5,1,1,1,1,0]]}",
                  "not above 0");
    check_refused(HEAD "\"table\":[[\"gemm\"]]}", "table[0]");
}

/* Of the second model of a kind of work nothing answers, so its trees are not
 * read: they may be wrong. */
TEST(only_the_models_that_are_needed_are_read)
{
    static const char first[] = MODEL(BAND, "\"model\":\"roofline\"," LINE);
    static const char second[] =
        HEAD "\"models\":[{\"family\":\"gemm\",\"types\":[\"fp32\"]," BAND
             ",\"model\":\"trees\"," LINE ",\"trees\":{\"offset\":0.5,"
             "\"scale\":1,\"edges\":[[1]],\"trees\":[[0]]}},"
             "{\"family\":\"gemm\",\"types\":[\"fp32\",\"fp16\"]," BAND
             ",\"model\":\"roofline\"," LINE "}]}";
    struct cost_build known = {.gpu = ""}, more = {.gpu = ""};
    struct cost_need need = {.known = &known};
    struct err err = {""};

    CHECK(!cost_read(first, strlen(first), "first", NULL, &known, &err));
    CHECK(cost_read(second, strlen(second), "second", NULL, &more, &err));
    CHECK(strstr(err.text, "do not add up"));
    cost_build_fini(&more);
    CHECK(!cost_read(second, strlen(second), "second", &need, &more, &err));
    CHECK_UINT(more.count, 1); /* the one that also has fp16 */
    CHECK_UINT(more.parts[0].model.kind, COST_LINE);
    cost_build_fini(&more);
    cost_build_fini(&known); /* and nothing is known: all are needed */
    need.flat = true;        /* but of trees only the mean */
    CHECK(!cost_read(second, strlen(second), "second", &need, &more, &err));
    CHECK_UINT(more.count, 2);
    CHECK_UINT(more.parts[0].model.kind, COST_LINE);
    const struct cost_roofline *line = more.parts[0].state;
    CHECK(fabs(line->compute - 0.5 / exp(0.5)) < 1e-12);
    cost_build_fini(&more);
}

static void add_line(struct cost_build *build, double floor_ns, double weight)
{
    struct cost_roofline *line = xmalloc(sizeof *line);
    struct cost_part part = {.state = line};

    *line = (struct cost_roofline){floor_ns, 1, 1, 0};
    part.model = (struct cost_model){.family = WORK_GEMM,
                                     .types = 1u << WORK_FP32,
                                     .variants = UINT32_MAX,
                                     .bytes = sizeof *line,
                                     .basis = COST_BORROWED,
                                     .low = 0.5,
                                     .high = 2,
                                     .weight = weight};
    cost_build_add(build, &part);
}

static uint64_t blended_ns(double first, double second)
{
    struct cost_build build = {.gpu = "h100"};
    struct gpu gpu = load_gpu("h100");
    struct work work = product(1, 1, 1);
    struct cost_gpu limits;
    struct cost_answer answer;
    struct err err = {""};

    cost_gpu_set(&gpu, &limits);
    add_line(&build, 1e6, first);
    add_line(&build, 16e6, second);
    struct cost_image *image = cost_build_image(&build, "here", &err);
    CHECK(image);
    cost_price(image, &limits, &work, &answer);
    CHECK_NEAR((double)answer.low_ns, 0.5 * (double)answer.ns, 1e-3);
    free(image);
    cost_build_fini(&build);
    return answer.ns;
}

TEST(neighbours_are_blended_by_their_weights)
{
    CHECK_NEAR((double)blended_ns(0, 0), 1e6, 1e-3); /* the first answers */
    CHECK_NEAR((double)blended_ns(1, 0), 1e6, 1e-3);
    CHECK_NEAR((double)blended_ns(1, 1), 4e6, 1e-3);
    CHECK_NEAR((double)blended_ns(1, 3), 8e6, 1e-3);
}

TEST(a_weight_is_not_negative)
{
    struct cost_build build = {.gpu = "h100"};
    struct err err = {""};

    add_line(&build, 1e6, -1);
    CHECK(!cost_build_image(&build, "here", &err));
    CHECK(strstr(err.text, "weight"));
    cost_build_fini(&build);
}

static void check_row(const char *row, const char *why)
{
    struct ops ops = {0};
    struct err err = {""};
    char path[] = "/tmp/memsim-ops-XXXXXX";
    FILE *out = fdopen(mkstemp(path), "w");

    fprintf(out, "# source: x\n# gpu: h100\nop,dtype,b,m,n,k,time_us\n%s\n",
            row);
    fclose(out);
    CHECK(ops_read(path, &ops, &err) == -1);
    if (!strstr(err.text, why) || !strstr(err.text, ":4: "))
        CHECK_FAIL("\"%s\" does not say \"%s\"", err.text, why);
    ops_free(&ops);
    unlink(path);
}

TEST(what_is_wrong_with_a_row_is_said)
{
    check_row("mm,fp32,1,8,8,8,-3", "not a time above 0");
    check_row("mm,fp32,1,8,8,8,nan", "not a time above 0");
    check_row("mm,fp32,1,8,x,8,3", "n is \"x\"");
    check_row("mm,fp33,1,8,8,8,3", "dtype \"fp33\"");
    check_row("wave,fp32,1,8,8,8,3", "operator \"wave\"");
    check_row("mm,fp32,1,8,8,8", "6 fields, the header has 7");
}

TEST(the_shipped_fits_price_their_gpu_and_lend_to_others)
{
    static const char *const names[] = {"h100-sxm-80gb", "rtx-5090", "a10"};
    struct work work = product(4096, 4096, 4096);

    work.type = WORK_BF16;
    for (int i = 0; i < 3; i++) {
        struct gpu gpu = load_gpu(names[i]);
        struct cost_gpu limits;
        struct cost_answer answer;
        struct err err = {""};
        struct cost_image *image = cost_fit_load(&gpu, NULL, &err);

        if (!image) {
            CHECK_FAIL("%s", err.text);
            continue;
        }
        CHECK(!cost_image_check(image, image->bytes));
        cost_gpu_set(&gpu, &limits);
        cost_price(image, &limits, &work, &answer);
        CHECK_UINT(answer.basis, i ? COST_BORROWED : COST_FITTED);
        CHECK((double)answer.ns >= cost_bound_ns(&limits, &work));
        CHECK((double)answer.ns < 3 * cost_bound_ns(&limits, &work));
        free(image);
    }
}

static uint64_t borrowed_ns(const char *name, const struct work *work)
{
    struct gpu gpu = load_gpu(name);
    struct cost_gpu limits;
    struct cost_answer answer = {0};
    struct err err = {""};
    struct cost_image *image = cost_fit_borrow(&gpu, &err);

    cost_gpu_set(&gpu, &limits);
    cost_price(image, &limits, work, &answer);
    CHECK_UINT(answer.basis, COST_BORROWED);
    free(image);
    return answer.ns;
}

/* The A100 40GB's 20 times, none under 29 us, are nearest to an H100. */
TEST(a_roofline_of_few_times_is_lent_last)
{
    struct work work = product(64, 512, 512);

    work.type = WORK_BF16;
    CHECK(borrowed_ns("h100-sxm-80gb", &work) < 12000);
}

static enum cost_basis basis_of(const char *name, const struct work *work)
{
    struct gpu gpu = load_gpu(name);
    struct cost_gpu limits;
    struct cost_answer answer = {0};
    struct err err = {""};
    struct cost_image *image = cost_fit_load(&gpu, NULL, &err);

    cost_gpu_set(&gpu, &limits);
    cost_price(image, &limits, work, &answer);
    free(image);
    return answer.basis;
}

/* The A100 40GB's 22 norms are off by a factor of 4 either way, its 22 softmax
 * by 2; the PCIe card, as alike as can be, has trees of both. */
/* An L4's power limit holds its clock below half of its boost: its rates are
 * its own. */
TEST(a_share_of_the_peak_under_a_power_limit_is_not_lent)
{
    struct gpu own = load_gpu("l4"), other = load_gpu("rtx-4070-ti-super");
    struct work work = product(8192, 8192, 8192);
    struct cost_answer answer;
    struct cost_gpu limits;
    struct err err = {""};

    struct cost_image *image = cost_fit_load(&own, NULL, &err);
    CHECK(image);
    cost_gpu_set(&own, &limits);
    cost_price(image, &limits, &work, &answer);
    free(image);
    CHECK(answer.basis == COST_FITTED);
    CHECK(answer.ns > 80000000 && answer.ns < 110000000); /* 103 ms */

    image = cost_fit_load(&other, NULL, &err);
    CHECK(image);
    cost_gpu_set(&other, &limits);
    cost_price(image, &limits, &work, &answer);
    free(image);
    CHECK(answer.basis == COST_ROOFLINE);
}

TEST(a_loose_roofline_comes_after_the_neighbours_models)
{
    struct work work = {.family = WORK_NORM_FORWARD,
                        .type = WORK_FP16,
                        .source = WORK_EXACT,
                        .element_bytes = 2,
                        .read_bytes = 2 * 8192 * 4096,
                        .written_bytes = 2 * 8192 * 4096,
                        .rows = {8192, 4096, 1}};

    CHECK_UINT(basis_of("a100-sxm-40gb", &work), COST_BORROWED);
    work.family = WORK_SOFTMAX_FORWARD;
    CHECK_UINT(basis_of("a100-sxm-40gb", &work), COST_FITTED);
}

static struct work gradient(enum work_family family, enum work_type type,
                            uint32_t element_bytes, uint64_t groups)
{
    return (struct work){.family = family,
                         .type = type,
                         .source = WORK_EXACT,
                         .element_bytes = element_bytes,
                         .convolution = {.n = 1,
                                         .c = 64,
                                         .k = 64,
                                         .groups = groups}};
}

/* The price of WORK where a forward convolution takes 1 ms, give or take a
 * factor of 2. */
static struct cost_answer gradient_price(const struct work *work,
                                         enum cost_basis basis)
{
    struct cost_build build = {.gpu = "v100-sxm2-16gb"};
    struct gpu gpu = load_gpu("v100-sxm2-16gb");
    struct cost_gpu limits;
    struct cost_answer answer = {0};
    struct err err = {""};

    cost_gpu_set(&gpu, &limits);
    add_line(&build, 1e6, 0);
    build.parts[0].model.family = WORK_CONVOLUTION_FORWARD;
    build.parts[0].model.types = UINT32_MAX;
    build.parts[0].model.basis = basis;
    struct cost_image *image = cost_build_image(&build, "here", &err);
    CHECK(image);
    cost_price(image, &limits, work, &answer);
    free(image);
    cost_build_fini(&build);
    return answer;
}

TEST(a_gradient_without_times_takes_a_multiple_of_the_forward)
{
    static const struct {
        enum work_family family;
        enum work_type type;
        uint32_t bytes;
        uint64_t groups;
        double ratio;
    } cases[] = {
        {WORK_CONVOLUTION_DGRAD, WORK_FP16, 2, 1, 1.22},
        {WORK_CONVOLUTION_WGRAD, WORK_BF16, 2, 1, 1.36},
        {WORK_CONVOLUTION_DGRAD, WORK_FP32, 4, 1, 1.03},
        {WORK_CONVOLUTION_WGRAD, WORK_TF32, 4, 1, 1.36},
        {WORK_CONVOLUTION_DGRAD, WORK_FP16, 2, 64, 1},
        {WORK_CONVOLUTION_WGRAD, WORK_FP16, 2, 64, 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct work work = gradient(cases[i].family, cases[i].type,
                                    cases[i].bytes, cases[i].groups);
        struct cost_answer answer = gradient_price(&work, COST_FITTED);
        double ns = (double)answer.ns;

        CHECK_NEAR(ns, 1e6 * cases[i].ratio, 1e-3);
        CHECK_UINT(answer.basis, COST_BORROWED);
        /* wider than the forward's band, narrower than both one after the
         * other */
        CHECK((double)answer.low_ns < 0.5 * ns);
        CHECK((double)answer.low_ns > 0.5 * 0.53 * ns);
        CHECK((double)answer.high_ns > 2 * ns);
        CHECK((double)answer.high_ns < 2 * 2.19 * ns);
        answer = gradient_price(&work, COST_ESTIMATED);
        CHECK_UINT(answer.basis, COST_ESTIMATED);
    }
}

/* Times of a GPU's own gradients win. */
TEST(a_gradient_with_times_does_not_follow_the_forward)
{
    struct work work = gradient(WORK_CONVOLUTION_DGRAD, WORK_FP16, 2, 1);

    CHECK_UINT(basis_of("v100-sxm2-16gb", &work), COST_FITTED);
    CHECK_UINT(basis_of("rtx-3090", &work), COST_ESTIMATED);
}

/* Flash attention 2 reaches 70% of an A100's peak and 35% of an H100's, whose
 * tensor cores it cannot feed. */
TEST(attention_is_not_lent_across_generations_of_tensor_cores)
{
    struct gpu gpu = load_gpu("a100-sxm-80gb");
    struct cost_gpu limits;
    struct work work = {.family = WORK_ATTENTION_FORWARD,
                        .type = WORK_BF16,
                        .source = WORK_EXACT,
                        .attention = {.batch = 8,
                                      .heads = 16,
                                      .kv_heads = 16,
                                      .queries = 4096,
                                      .keys = 4096,
                                      .head_size = 128,
                                      .value_size = 128,
                                      .kernel = WORK_ATTENTION_FLASH2}};

    work.flops = 4.0 * 8 * 16 * 4096 * 4096 * 128;
    cost_gpu_set(&gpu, &limits);
    CHECK((double)borrowed_ns("a100-sxm-80gb", &work) <
          2 * cost_bound_ns(&limits, &work));
}

TEST(odd_rows_of_16_bits_cost_more)
{
    struct gpu gpu = load_gpu("h100");
    struct cost_gpu limits;
    struct cost_answer even, odd;
    struct err err = {""};
    struct cost_image *image = cost_fit_load(&gpu, NULL, &err);
    struct work aligned = product(8192, 50304, 768);
    struct work crooked = product(8192, 50257, 768);

    aligned.type = crooked.type = WORK_BF16;
    cost_gpu_set(&gpu, &limits);
    cost_price(image, &limits, &aligned, &even);
    cost_price(image, &limits, &crooked, &odd);
    CHECK((double)odd.ns > 3 * (double)even.ns);
    aligned.type = crooked.type = WORK_FP32;
    cost_price(image, &limits, &aligned, &even);
    cost_price(image, &limits, &crooked, &odd);
    CHECK((double)odd.ns < 1.2 * (double)even.ns);
    free(image);
}

static double half_product_us(const char *name, uint64_t m, uint64_t n,
                              uint64_t k, uint64_t batch)
{
    struct gpu gpu = load_gpu(name);
    struct cost_gpu limits;
    struct cost_answer answer = {0};
    struct err err = {""};
    struct cost_image *image = cost_fit_load(&gpu, NULL, &err);
    struct work work = product(m, n, k);

    work.type = WORK_BF16;
    work.flops *= (double)batch;
    work.gemm.batch = batch;
    work.read_bytes = 2 * (double)(batch * k * (m + n));
    work.written_bytes = 2 * (double)(batch * m * n);
    cost_gpu_set(&gpu, &limits);
    cost_price(image, &limits, &work, &answer);
    free(image);
    return (double)answer.ns / 1e3;
}

/* The products of attention in AMD-AGI/TraceLens's traces of timesformer and
 * owlv2. */
TEST(odd_products_take_what_profiles_of_an_h100_show)
{
    CHECK_NEAR(half_product_us("h100", 3137, 3137, 64, 96), 1897, 0.2);
    CHECK_NEAR(half_product_us("h100", 3137, 64, 3137, 96), 1694, 0.2);
    CHECK_NEAR(half_product_us("h100", 5185, 5185, 64, 16), 1083, 0.2);
    CHECK_NEAR(half_product_us("h100", 5185, 64, 5185, 16), 827, 0.2);
}

/* A GeForce's tensor cores are no faster than what feeds them in odd rows. */
TEST(odd_rows_cost_little_where_tensor_cores_are_slow)
{
    double odd = half_product_us("rtx-3090", 197, 197, 64, 2304);
    double even = half_product_us("rtx-3090", 200, 200, 64, 2304);

    CHECK(odd < 1.2 * even && odd > 0.8 * even);
    odd = half_product_us("a100", 4095, 4095, 4095, 1);
    even = half_product_us("a100", 4096, 4096, 4096, 1);
    CHECK(odd > 2 * even && odd < 4 * even);
}

TEST(another_gpu_s_fit_is_refused)
{
    struct gpu gpu = load_gpu("l4");
    struct err err = {""};
    char path[] = "/tmp/memsim-fit-XXXXXX";
    FILE *out = fdopen(mkstemp(path), "w");

    fputs(HEAD "\"models\":[]}", out);
    fclose(out);
    CHECK(!cost_fit_load(&gpu, path, &err));
    CHECK(strstr(err.text, "fitted for h100-sxm-80gb, not for l4") != NULL);
    unlink(path);
}

TEST(a_damaged_image_is_refused)
{
    struct gpu gpu = load_gpu("h100");
    struct err err = {""};
    struct cost_image *image = cost_fit_load(&gpu, NULL, &err);
    uint32_t bytes = image ? image->bytes : 0;
    uint64_t state = 3;

    /* whatever is changed: refused, or still safe to ask */
    for (int i = 0; image && i < 300; i++) {
        struct cost_gpu limits;
        struct cost_answer answer;
        struct work work = product(512, 512, 512);
        uint32_t at = draw_extent(&state) % (i % 2 ? bytes : 4096);
        uint8_t old = ((uint8_t *)image)[at];

        cost_gpu_set(&gpu, &limits);
        ((uint8_t *)image)[at] = (uint8_t)draw_extent(&state);
        if (!cost_image_check(image, bytes))
            cost_price(image, &limits, &work, &answer);
        ((uint8_t *)image)[at] = old;
    }
    CHECK(image && !cost_image_check(image, bytes));
    CHECK(image && cost_image_check(image, bytes - 8) != NULL);
    free(image);
}
