/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/catalogue/gpu_field.h"
#include "common/base/json_text.h"
#include "common/base/share.h"
#include "common/base/units.h"
#include "runtime/cost/cost.h"
#include "check.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <stdbool.h>
#include <strings.h>

/* The smallest file that says enough. */
#define ENOUGH                                                                 \
    "\"compute_capability\": \"9.0\", \"memory_bytes\": 85899345920,"          \
    "\"sm_count\": 100, \"clock_boost_mhz\": 2000, \"memory_gbps\": 3000"

static int load(const char *json, struct gpu *gpu, struct err *err)
{
    err_clear(err);
    return gpu_load_text(json, strlen(json), "dir/my.json", NULL, gpu, err);
}

/* What is said of JSON, which must be refused. */
static void refused(const char *json, const char *want)
{
    struct gpu gpu = {.sm_count = 12345};
    struct err err = {""};

    if (!load(json, &gpu, &err))
        CHECK_FAIL("accepted: %s", json);
    CHECK_STR(err.text, want);
    CHECK_UINT(gpu.sm_count, 12345);
}

static char *write_file(const char *name, const char *text)
{
    static char path[64];
    char directory[] = "/tmp/memsim-gpu-XXXXXX";

    if (!mkdtemp(directory))
        CHECK_FAIL("mkdtemp: %m");
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file))
        CHECK_FAIL("%s: %m", path);
    return path;
}

static void remove_file(char *path)
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
}

static struct gpu *all(size_t *count)
{
    struct err err = {""};
    struct gpu *list = NULL;

    *count = 0;
    if (gpu_list(&list, count, &err))
        CHECK_FAIL("%s", err.text);
    return list;
}

static cJSON *card(const char *name)
{
    char path[PATH_MAX];
    struct err err = {""};
    size_t length;
    char *text = NULL;

    if (gpu_path(name, path, sizeof path, &err) ||
        !(text = json_text_read(path, &length, &err)))
        CHECK_FAIL("%s", err.text);
    cJSON *root = json_text_parse(text, length, path, &err);
    free(text);
    return root;
}

TEST(reads_the_reference_card)
{
    struct gpu gpu;
    struct err err = {""};

    CHECK(!gpu_load("h100-sxm-80gb", &gpu, &err));
    CHECK_STR(gpu.name, "h100-sxm-80gb");
    CHECK_STR(gpu.device_name, "NVIDIA H100 80GB HBM3");
    CHECK_UINT(gpu.capability_major, 9);
    CHECK_UINT(gpu.capability_minor, 0);
    CHECK_UINT(gpu.memory_bytes, UINT64_C(85017755648));
    CHECK_UINT(gpu.context_bytes, 525 * MIB);
    CHECK_UINT(gpu.sm_count, 132);
    CHECK_UINT(gpu.l2_bytes, 50 * MIB);
    CHECK_NEAR(gpu.bf16_tflops, 989.4, 0);
    CHECK_NEAR(gpu.memory_gbps, 3350, 0);
    CHECK_UINT(gpu.shared_per_block_optin_bytes, 227 * 1024);
    CHECK_UINT(gpu.max_threads_per_sm, 2048);
}

TEST(finds_by_name_alias_and_device_in_any_case)
{
    static const char *const names[] = {"h100", "H100", "H100-SXM-80gb",
                                        "nvidia h100 80gb hbm3", "p5"};
    struct gpu gpu;
    struct err err = {""};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        memset(&gpu, 0, sizeof gpu);
        CHECK(!gpu_load(names[i], &gpu, &err));
        CHECK_STR(gpu.name, "h100-sxm-80gb");
    }
}

TEST(every_card_loads_and_is_sane)
{
    size_t count;
    struct gpu *list = all(&count);

    CHECK(count >= 30);
    for (size_t i = 0; i < count; i++) {
        const struct gpu *g = &list[i];
        uint64_t smi_bytes = g->smi_memory_mib * MIB;
        uint64_t kept = strstr(g->name, "-vgpu-") ? smi_bytes / 16 : 0;
        bool sane = g->memory_bytes <= smi_bytes &&
                    smi_bytes - g->memory_bytes < 3 * GIB / 2 + kept &&
                    g->context_bytes > 50 * MIB && g->context_bytes < GIB &&
                    g->context_torch_bytes >= g->context_bytes &&
                    g->clock_base_mhz <= g->clock_boost_mhz &&
                    g->l2_bytes % (MIB / 4) == 0 &&
                    strncmp(g->device_name, g->name, sizeof g->name) != 0 &&
                    (g->nvlink_gbps > 0) == (g->nvlink_links > 0) &&
                    (i == 0 || strcmp(list[i - 1].name, g->name) < 0);
        if (!sane)
            CHECK_FAIL("%s is not sane", g->name);
    }
    free(list);
}

TEST(bandwidth_is_clock_times_bus)
{
    size_t count;
    struct gpu *list = all(&count);

    for (size_t i = 0; i < count; i++) {
        double gbps =
            2e-3 * list[i].clock_memory_mhz * (list[i].memory_bus_bits / 8.0);
        if (fabs(gbps / list[i].memory_gbps - 1) > 0.03)
            CHECK_FAIL("%s: %g GB/s by its clock, %g by its datasheet",
                       list[i].name, gbps, list[i].memory_gbps);
    }
    free(list);
}

/* Cards whose tensor cores are not rated at the boost clock, by their peaks in
 * every type (NVIDIA's white papers give 1830 MHz for the H100 SXM), and one
 * that is cut to a quarter. */
static const struct rated {
    const char *name;
    double tensor_mhz;
} rated[] = {
    {"b200", 1856},           {"gh200-144gb", 1830},
    {"gh200-96gb", 1830},     {"h100-nvl-94gb", 1545},
    {"h100-pcie-80gb", 1620}, {"h100-sxm-80gb", 1830},
    {"h200", 1830},           {"h20", 463},
    {"b300", 1856},           {"gb200", 2008},
    {"gb300", 2008},
};

/* Cards at half their generation's rate: GeForce where sums are in fp32, the
 * A10G and L40 in all types. */
static const char *const halved[] = {"a10g",     "l40",      "rtx-2080-ti",
                                     "rtx-3060", "rtx-3080", "rtx-3090",
                                     "rtx-4090", "rtx-5090", "rtx-3080-laptop",
                                     "rtx-4090-laptop", "rtx-3080-ti-laptop",
                                     "rtx-4070-ti-super", "l20",
                                     "rtx-5070-ti", "rtx-5080"};

static double tensor_mhz(const struct gpu *g)
{
    for (size_t i = 0; i < sizeof rated / sizeof *rated; i++)
        if (!strcmp(g->name, rated[i].name))
            return rated[i].tensor_mhz;
    return g->clock_boost_mhz;
}

static double share_of(const struct gpu *g, bool floating)
{
    for (size_t i = 0; i < sizeof halved / sizeof *halved; i++)
        if (!strcmp(g->name, halved[i]) &&
            (floating || strncmp(g->name, "rtx", 3) != 0))
            return 0.5;
    return 1;
}

static void check_peak(const struct gpu *g, const char *type, double has,
                       double generation, double clock_mhz)
{
    double derived = generation * clock_mhz / g->clock_boost_mhz;

    if ((has > 0) != (derived > 0) || fabs(has - derived) > 0.0125 * derived)
        CHECK_FAIL("%s: %s is %g, %g by units and clock", g->name, type, has,
                   derived);
}

/* Every peak again, from SMs, operations a clock and clock. Within a
 * datasheet's rounding; the H20's FP64 is cut beyond any clock. */
TEST(peaks_are_units_times_clock)
{
    size_t count;
    struct gpu *list = all(&count);

    for (size_t i = 0; i < count; i++) {
        static const char *const keys[] = {
            "fp64_tflops", "fp64_tensor_tflops", "fp32_tflops",
            "tf32_tflops", "fp16_tflops",        "bf16_tflops",
            "fp8_tflops",  "int8_tops",          "fp4_tflops"};
        const struct gpu *g = &list[i];
        struct gpu plain = *g;
        double boost = g->clock_boost_mhz, tensor = tensor_mhz(g);
        double half = tensor * share_of(g, true);

        if (g->is_variant)
            continue;
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            gpu_field_forget(gpu_field_find(keys[k]), &plain);
        gpu_field_defaults(&plain);
        if (strcmp(g->name, "h20") != 0) {
            check_peak(g, "fp64", g->fp64_tflops, plain.fp64_tflops, boost);
            check_peak(g, "fp64 tensor", g->fp64_tensor_tflops,
                       plain.fp64_tensor_tflops, boost);
        }
        check_peak(g, "fp32", g->fp32_tflops, plain.fp32_tflops, boost);
        check_peak(g, "tf32", g->tf32_tflops, plain.tf32_tflops, half);
        check_peak(g, "fp16", g->fp16_tflops, plain.fp16_tflops, half);
        check_peak(g, "bf16", g->bf16_tflops, plain.bf16_tflops, half);
        check_peak(g, "fp8", g->fp8_tflops, plain.fp8_tflops, half);
        check_peak(g, "int8", g->int8_tops, plain.int8_tops,
                   tensor * share_of(g, false));
        check_peak(g, "fp4", g->fp4_tflops, plain.fp4_tflops, tensor);
    }
    free(list);
}

/* Where a context was measured, the rule for those that were not must agree. */
TEST(context_rule_agrees_with_what_was_measured)
{
    size_t count;
    struct gpu *list = all(&count);
    size_t measured = 0;

    for (size_t i = 0; i < count; i++) {
        cJSON *root = card(list[i].name);
        struct gpu rule = list[i];
        if (cJSON_IsNumber(cJSON_GetObjectItem(root, "context_bytes"))) {
            measured++;
            gpu_field_forget(gpu_field_find("context_bytes"), &rule);
            gpu_field_defaults(&rule);
            CHECK_NEAR((double)rule.context_bytes,
                       (double)list[i].context_bytes, 0.03);
        }
        cJSON_Delete(root);
    }
    CHECK(measured >= 5);
    free(list);
}

/* Adds every name that FILE's card goes by to NAMES, none twice. */
static void collect_names(const char *file, cJSON *names)
{
    cJSON *root = card(file);
    const cJSON *alias;

    cJSON_ArrayForEach(alias, cJSON_GetObjectItem(root, "aliases"))
    {
        if (cJSON_HasObjectItem(names, alias->valuestring))
            CHECK_FAIL("%s: \"%s\" is taken", file, alias->valuestring);
        cJSON_AddTrueToObject(names, alias->valuestring);
    }
    cJSON_Delete(root);
}

TEST(names_are_unique)
{
    size_t count;
    struct gpu *list = all(&count);
    cJSON *names = cJSON_CreateObject();

    for (size_t i = 0; i < count; i++) {
        const char *own[] = {list[i].name, list[i].device_name};
        cJSON *root = card(list[i].name);
        size_t count_own = cJSON_HasObjectItem(root, "device_name") ? 2 : 1;
        cJSON_Delete(root);
        for (size_t j = 0; j < count_own; j++) {
            if (cJSON_HasObjectItem(names, own[j]))
                CHECK_FAIL("\"%s\" is taken", own[j]);
            cJSON_AddTrueToObject(names, own[j]);
        }
    }
    for (size_t i = 0; i < count; i++)
        collect_names(list[i].name, names);
    cJSON_Delete(names);
    free(list);
}

static int sources_of(const cJSON *root, const char *key)
{
    const cJSON *source, *item;
    int count = 0;

    cJSON_ArrayForEach(source, cJSON_GetObjectItem(root, "sources"))
    {
        const char *text =
            cJSON_GetStringValue(cJSON_GetObjectItem(source, "source"));
        cJSON_ArrayForEach(item, cJSON_GetObjectItem(source, "keys"))
        {
            count += text && *text && !strcmp(item->valuestring, key);
        }
    }
    return count;
}

TEST(every_value_has_one_source)
{
    static const char *const own[] = {"name", "aliases", "device_name",
                                      "sources"};
    size_t count;
    struct gpu *list = all(&count);

    for (size_t i = 0; i < count; i++) {
        cJSON *root = card(list[i].name);
        const cJSON *item;
        cJSON_ArrayForEach(item, root)
        {
            bool needs = true;
            for (size_t j = 0; j < sizeof own / sizeof *own; j++)
                needs &= strcmp(own[j], item->string) != 0;
            if (needs && sources_of(root, item->string) != 1)
                CHECK_FAIL("%s: \"%s\" has %d sources", list[i].name,
                           item->string, sources_of(root, item->string));
        }
        cJSON_Delete(root);
    }
    free(list);
}

TEST(a_small_file_is_enough)
{
    struct gpu gpu;
    struct err err = {""};

    CHECK(!load("{" ENOUGH "}", &gpu, &err));
    CHECK_STR(gpu.name, "my");
    CHECK_STR(gpu.device_name, "my");
    CHECK_NEAR(gpu.fp32_tflops, 100 * 128 * 2 * 2e-3, 1e-12);
    CHECK_NEAR(gpu.bf16_tflops, 100 * 4096 * 2e-3, 1e-12);
    CHECK_UINT(gpu.smi_memory_mib, 81920);
    CHECK_UINT(gpu.context_bytes, 100 * (2048 + 2025) * KIB);
    CHECK_UINT(gpu.context_torch_bytes, gpu.context_bytes + 70 * MIB);
    CHECK_UINT(gpu.cublas_bytes, 66 << 20);
    CHECK_UINT(gpu.nccl_bytes, 0); /* no NVLink is told of */
    CHECK_UINT(gpu.cudnn_bytes, 8 * MIB);
    CHECK_UINT(gpu.cusparse_bytes, 4 * MIB);
    CHECK_UINT(gpu.max_blocks_per_sm, 32);
    CHECK_NEAR(gpu.nvlink_gbps, 0, 0);
}

TEST(null_means_the_default)
{
    struct gpu gpu;
    struct err err = {""};

    CHECK(
        !load("{" ENOUGH ", \"warp_size\": null, \"name\": null}", &gpu, &err));
    CHECK_UINT(gpu.warp_size, 32);
    CHECK_STR(gpu.name, "my");
}

TEST(totals_of_cuda_and_nvidia_smi_tell_each_other)
{
    struct gpu gpu;
    struct err err = {""};

    CHECK(!load("{\"compute_capability\": \"8.6\", \"sm_count\": 46,"
                "\"clock_boost_mhz\": 1725, \"smi_memory_mib\": 8192,"
                "\"clock_memory_mhz\": 7001, \"memory_bus_bits\": 256}",
                &gpu, &err));
    CHECK_UINT(gpu.memory_bytes, (8192 - 518) * MIB);
    CHECK_NEAR(gpu.memory_gbps, 448.064, 1e-9);
}

TEST(a_capability_not_known_takes_the_one_below)
{
    struct gpu gpu;
    struct err err = {""};

    CHECK(!load("{\"compute_capability\": \"12.1\", \"memory_bytes\": 1e11,"
                "\"sm_count\": 48, \"clock_boost_mhz\": 2400,"
                "\"memory_gbps\": 273}",
                &gpu, &err));
    CHECK_UINT(gpu.capability_minor, 1);
    CHECK_UINT(gpu.max_threads_per_sm, 1536);
}

TEST(a_file_may_start_from_a_card)
{
    struct gpu gpu, base;
    struct err err = {""};
    char *path = write_file("half.json", "{\"base\": \"H100\",\n"
                                         " \"memory_bytes\": 42949672960}\n");

    CHECK(!gpu_load("h100", &base, &err));
    CHECK(!gpu_load(path, &gpu, &err));
    CHECK_STR(err.text, "");
    CHECK_STR(gpu.name, "half");
    CHECK_STR(gpu.device_name, base.device_name);
    CHECK_UINT(gpu.memory_bytes, 40 * GIB);
    CHECK_UINT(gpu.smi_memory_mib, 40960);
    CHECK_UINT(gpu.context_bytes, base.context_bytes);
    CHECK_NEAR(gpu.bf16_tflops, base.bf16_tflops, 0);
    remove_file(path);
}

TEST(a_slice_has_its_share_of_the_peaks)
{
    struct gpu slice, whole;
    struct err err = {""};

    CHECK(!gpu_load("H100-sxm-80gb", &whole, &err));
    CHECK(!gpu_load("h100-sxm-80gb-mig-3g.40gb", &slice, &err));
    CHECK(slice.is_variant && !whole.is_variant);
    CHECK_UINT(slice.memory_bytes, UINT64_C(42412802048));
    CHECK_NEAR(slice.bf16_tflops, whole.bf16_tflops * 60 / 132, 1e-12);
    CHECK_NEAR(slice.memory_gbps, whole.memory_gbps / 2, 1e-12);
    CHECK(slice.context_bytes < whole.context_bytes);
}

TEST(a_peak_of_the_file_is_not_changed)
{
    struct gpu gpu, base;
    struct err err = {""};
    char *path = write_file("half.json", "{\"base\": \"h100\",\n"
                                         " \"sm_count\": 66,\n"
                                         " \"bf16_tflops\": 500}\n");

    CHECK(!gpu_load("h100", &base, &err));
    CHECK(!gpu_load(path, &gpu, &err));
    CHECK_NEAR(gpu.bf16_tflops, 500, 0);
    CHECK_NEAR(gpu.fp32_tflops, base.fp32_tflops / 2, 1e-12);
    remove_file(path);
}

/* Measured on an H200, which the rules were scaled from. */
TEST(the_rules_give_what_an_h200_takes)
{
    struct gpu card, rule;
    struct err err = {""};
    char *path = write_file("rule.json", "{\"base\": \"h200\",\n"
                                         " \"context_torch_bytes\": null,\n"
                                         " \"context_driver_bytes\": null,\n"
                                         " \"cublas_bytes\": null,\n"
                                         " \"cudnn_bytes\": null,\n"
                                         " \"cufft_bytes\": null,\n"
                                         " \"cusolver_bytes\": null,\n"
                                         " \"cusolver_first_bytes\": null,\n"
                                         " \"streams_bytes\": null,\n"
                                         " \"managed_bytes\": null,\n"
                                         " \"nccl_first_bytes\": null}\n");

    CHECK(!gpu_load("h200", &card, &err));
    CHECK(!gpu_load(path, &rule, &err));
    CHECK_UINT(rule.context_torch_bytes, card.context_torch_bytes);
    CHECK_UINT(rule.context_driver_bytes, card.context_driver_bytes);
    CHECK_UINT(rule.cublas_bytes, card.cublas_bytes);
    CHECK_UINT(rule.cudnn_bytes, card.cudnn_bytes);
    CHECK_UINT(rule.cufft_bytes, card.cufft_bytes);
    CHECK_UINT(rule.cusolver_bytes, card.cusolver_bytes);
    CHECK_UINT(rule.cusolver_first_bytes, card.cusolver_first_bytes);
    CHECK_UINT(rule.streams_bytes, card.streams_bytes);
    CHECK_UINT(rule.managed_bytes, card.managed_bytes);
    CHECK_UINT(rule.nccl_first_bytes, card.nccl_first_bytes);
    remove_file(path);
}

/* What programs had beside PyTorch's allocator, in MiB, by texts and by
 * nvidia-smi (data/gpus/README.md): within 1 % or 150 MiB. */
TEST(published_memory_of_programs_is_near)
{
    static const struct program {
        const char *gpu;
        uint64_t mib;
        int kernels, cublas, cudnn, plans; /* of cuFFT */
    } programs[] = {
        {"b200", 711, 1, 0, 0, 0},
        {"h200", 531, 0, 0, 0, 0},
        {"h100-pcie-80gb", 601, 1, 1, 0, 0},
        {"a100-sxm-40gb", 422, 0, 0, 0, 0},
        {"a100-sxm-40gb", 504, 1, 2, 0, 0},
        {"v100-sxm2-32gb", 399, 1, 2, 2, 0},
        {"rtx-4090", 477, 1, 2, 0, 0},
        {"rtx-3090", 315, 1, 1, 0, 0},
        {"l4", 328, 1, 2, 0, 0},
        {"t4", 147, 1, 2, 0, 0},
        {"rtx-3080-ti-laptop", 262, 1, 0, 0, 128},
        {"rtx-3080-ti-laptop", 2222, 1, 0, 0, 4096},
    };

    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        const struct program *p = &programs[i];
        struct gpu gpu;
        struct err err = {""};

        if (gpu_load(p->gpu, &gpu, &err))
            CHECK_FAIL("%s", err.text);
        uint64_t ours =
            (p->kernels ? gpu.context_torch_bytes : gpu.context_bytes) +
            (uint64_t)p->cublas * gpu.cublas_bytes +
            (uint64_t)p->cudnn * gpu.cudnn_bytes +
            (p->plans ? gpu.cufft_bytes : 0) +
            (uint64_t)p->plans * gpu.cufft_plan_bytes;
        double off = (double)ours / (double)MIB - (double)p->mib;
        double most = (double)p->mib / 100;
        if (fabs(off) > (most > 150 ? most : 150))
            CHECK_FAIL("%s: %.0f MiB off %" PRIu64, p->gpu, off, p->mib);
    }
}

TEST(memory_that_grows_with_the_threads_is_not_a_base_s)
{
    struct gpu gpu, base;
    struct err err = {""};
    char *path = write_file("half.json", "{\"base\": \"h200\",\n"
                                         " \"sm_count\": 66,\n"
                                         " \"nccl_first_bytes\": 5}\n");

    CHECK(!gpu_load("h200", &base, &err));
    CHECK(!gpu_load(path, &gpu, &err));
    CHECK_UINT(gpu.streams_bytes, base.streams_bytes / 2 + MIB);
    CHECK_UINT(gpu.context_torch_bytes, gpu.context_bytes + 46 * MIB);
    CHECK_UINT(gpu.nccl_first_bytes, 5);
    CHECK_UINT(gpu.cublas_bytes, base.cublas_bytes);
    remove_file(path);
    path = write_file("bare.json", "{\"base\": \"h200\",\n"
                                   " \"context_bytes\": 600000000}\n");
    CHECK(!gpu_load(path, &gpu, &err));
    CHECK_UINT(gpu.context_torch_bytes, 600000000 + 92 * MIB);
    CHECK_UINT(gpu.streams_bytes, base.streams_bytes);
    remove_file(path);
}

TEST(a_base_must_be_in_the_catalogue)
{
    struct gpu gpu;
    struct err err = {""};
    char *path = write_file("x.json", "{\"base\": \"h1000\"}");

    CHECK(gpu_load(path, &gpu, &err));
    CHECK(strstr(err.text, "h1000: no GPU of that name; near it: h100-"));
    remove_file(path);
    refused("{\n\"base\": \"h100\"}",
            "dir/my.json:2: \"base\" is not allowed here: this GPU is "
            "another's base");
}

TEST(unknown_names_are_told_the_near_ones)
{
    struct gpu gpu;
    struct err err = {""};

    CHECK(gpu_load("a100-sxm-80", &gpu, &err));
    CHECK(strstr(err.text, "near it: a100-sxm-80gb"));
    CHECK(strstr(err.text, "`memsim gpus` lists all"));
    err_clear(&err);
    CHECK(gpu_load("quite something else", &gpu, &err));
    CHECK_STR(err.text, "quite something else: no GPU of that name; "
                        "`memsim gpus` lists all");
    err_clear(&err);
    CHECK(gpu_load("/nonexistent/x.json", &gpu, &err));
    CHECK_STR(err.text, "/nonexistent/x.json: No such file or directory");
}

TEST(refuses_what_is_no_json)
{
    refused("", "dir/my.json:1: no valid JSON here");
    refused("{\n  \"sm_count\": 1,\n}", "dir/my.json:3: no valid JSON here");
    refused("{" ENOUGH "}\n{}",
            "dir/my.json:2: something follows the end of the JSON text");
    refused("[]", "dir/my.json:1: the file must hold one JSON object");
    refused("{\"sm_count\": NaN}", "dir/my.json:1: no valid JSON here");
}

TEST(refuses_unknown_and_doubled_keys)
{
    refused("{" ENOUGH ",\n\"memory_byte\": 1}",
            "dir/my.json:2: \"memory_byte\" is no key of a GPU; did you mean "
            "\"memory_bytes\"?");
    refused("{\n\"colour\": \"red\"}",
            "dir/my.json:2: \"colour\" is no key of a GPU; "
            "data/gpus/README.md lists them");
    refused("{" ENOUGH ",\n \"sm_count\": 3}",
            "dir/my.json:1: \"sm_count\" is there twice");
}

TEST(refuses_values_of_the_wrong_kind)
{
    refused("{\"sm_count\": \"132\"}", "dir/my.json:1: \"sm_count\" must be a "
                                       "whole number from 1 to 4096");
    refused("{\"name\": 3}", "dir/my.json:1: \"name\" must be a text");
    refused("{\"name\": \"\"}", "dir/my.json:1: \"name\" must be a text");
    refused("{\"name\": \"a name that is longer than the room for it\"}",
            "dir/my.json:1: \"name\" is longer than 31 characters");
    refused("{\"base\": 1}", "dir/my.json:1: \"base\" must be a text");
}

TEST(refuses_values_out_of_range)
{
    refused("{\"sm_count\": 0}", "dir/my.json:1: \"sm_count\" must be a whole "
                                 "number from 1 to 4096");
    refused("{\"sm_count\": 1.5}", "dir/my.json:1: \"sm_count\" must be a "
                                   "whole number from 1 to 4096");
    refused("{\"memory_bytes\": 1e300}",
            "dir/my.json:1: \"memory_bytes\" must be a whole number from "
            "1048576 to 281474976710656");
    refused("{\"bf16_tflops\": -1}", "dir/my.json:1: \"bf16_tflops\" must be "
                                     "a number from 0 to 1000000");
    refused("{\"memory_gbps\": 0}", "dir/my.json:1: \"memory_gbps\" must be a "
                                    "number from 0.001 to 1000000");
    refused("{\"memory_gbps\": 1e999}",
            "dir/my.json:1: \"memory_gbps\" must be a number from 0.001 to "
            "1000000");
}

TEST(refuses_capabilities_it_cannot_model)
{
    static const char *const bad[] = {"9",    "9.",    "nine", " 9.0", "-9.0",
                                      "9.0x", "100.0", "9.00", ""};
    char json[64];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(json, sizeof json, "{\"compute_capability\": \"%s\"}", bad[i]);
        refused(json, "dir/my.json:1: \"compute_capability\" must be a text "
                      "like \"9.0\"");
    }
    refused("{\"compute_capability\": \"5.2\"}",
            "dir/my.json:1: \"compute_capability\" is below 6.0, which is not "
            "modelled");
}

/* A lower power limit leaves less clock to matrix products; the file may say how
 * much. Peaks of the data sheet, of which shares are told, stay. */
static void load_over_h100(const char *keys, struct gpu *gpu)
{
    char json[128];

    snprintf(json, sizeof json, "{\"base\": \"h100\", %s}", keys);
    CHECK(!gpu_load_text(json, strlen(json), "dir/my.json", gpu_load, gpu,
                         NULL));
}

TEST(a_power_limit_slows_tensor_cores_down)
{
    struct gpu h100, capped, told, higher;
    struct cost_gpu fast, slow;

    CHECK(!gpu_load("h100", &h100, NULL));
    CHECK(h100.clock_load_mhz == h100.clock_boost_mhz && h100.load_ratio == 1);
    load_over_h100("\"power_watts\": 500", &capped);
    CHECK_NEAR(capped.load_ratio, pow(500.0 / 700, 0.85), 1e-3);
    CHECK_UINT(capped.clock_load_mhz, 1487);
    CHECK(capped.bf16_tflops == h100.bf16_tflops);
    cost_gpu_set(&h100, &fast);
    cost_gpu_set(&capped, &slow);
    CHECK_NEAR(slow.tflops[WORK_BF16],
               fast.tflops[WORK_BF16] * capped.load_ratio, 1e-9);
    CHECK_NEAR(slow.tflops[WORK_FP32], fast.tflops[WORK_FP32], 1e-9);
    load_over_h100("\"power_watts\": 500, \"clock_load_mhz\": 990", &told);
    CHECK_NEAR(told.load_ratio, 0.5, 1e-9);
    load_over_h100("\"power_watts\": 900", &higher);
    CHECK(higher.load_ratio == 1);
}

TEST(refuses_what_is_missing_or_contradicts)
{
    refused("{}", "dir/my.json: \"compute_capability\" is missing; give it, "
                  "or a \"base\"");
    refused("{\"compute_capability\": \"9.0\", \"sm_count\": 1,"
            "\"clock_boost_mhz\": 1}",
            "dir/my.json: \"memory_bytes\" is missing; give it, or "
            "nvidia-smi's \"smi_memory_mib\", or a \"base\"");
    refused("{\"compute_capability\": \"9.0\", \"sm_count\": 1,"
            "\"clock_boost_mhz\": 1, \"memory_bytes\": 1e9}",
            "dir/my.json: \"clock_memory_mhz\" is missing, and nothing else "
            "tells it");
    refused("{" ENOUGH ",\n\"context_bytes\": 85899345920}",
            "dir/my.json:2: \"context_bytes\" is more than memory_bytes");
    refused("{" ENOUGH ",\n\"context_torch_bytes\": 1}",
            "dir/my.json:2: \"context_torch_bytes\" is less than "
            "context_bytes");
    refused("{" ENOUGH ",\n\"smi_memory_mib\": 81919}",
            "dir/my.json:2: \"smi_memory_mib\" is less than memory_bytes");
    refused("{" ENOUGH ",\n\"shared_per_sm_bytes\": 1024}",
            "dir/my.json: \"shared_per_block_optin_bytes\" is more than "
            "shared_per_sm_bytes");
}

TEST(finds_the_data_where_it_is_told_to)
{
    char path[PATH_MAX];
    struct err err = {""};

    setenv("MEMSIM_SHARE", "/some/where", 1);
    CHECK(!share_path("gpus", path, sizeof path, &err));
    CHECK_STR(path, "/some/where/gpus");
    CHECK(share_path("gpus", path, 8, &err));
    CHECK_STR(err.text, "/some/where/gpus: the path is too long");
    unsetenv("MEMSIM_SHARE");
    err_clear(&err);
    CHECK(!share_path("gpus/t4.json", path, sizeof path, &err));
    CHECK(!access(path, R_OK));
}
