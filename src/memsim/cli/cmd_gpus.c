/* SPDX-License-Identifier: Apache-2.0
 * memsim gpus: the catalogue as a table, or one GPU with its sources. */
#include "memsim/cli/cmd.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/catalogue/gpu.h"
#include "common/catalogue/gpu_field.h"
#include "common/base/json_text.h"
#include "common/base/text_clean.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "fits/cost_fit.h"
#include "memsim/report/json/schema.h"

#define LINE_MAX_WIDTH 78

struct values {
    bool json;
};

static const struct option_row rows[] = {
    {"json", 0, OPTION_FLAG, NULL, offsetof(struct values, json),
     .help = "print JSON"},
    {0},
};

static const struct options options = {
    .command = "memsim gpus",
    .operands = "[NAME|FILE.json]",
    .summary = "Lists the GPUs that --gpu accepts. Given one, prints all its "
               "values with their\nsources. FIT: prices of operations were "
               "fitted to this GPU's own times;\nothers borrow those "
               "of the nearest ones.",
    .rows = rows,
    .wanted = "give at most one GPU",
    .operands_max = 1,
};

/* The table. */

static void print_peak(double tflops)
{
    if (tflops > 0)
        printf(" %12.1f", tflops);
    else
        printf(" %12s", "-");
}

static void print_row(const struct gpu *gpu)
{
    printf("%-26s %8.2f  %4" PRIu32 "  %8" PRIu32 ".%" PRIu32 "  %6.0f",
           gpu->name, (double)gpu->memory_bytes / (double)GIB, gpu->sm_count,
           gpu->capability_major, gpu->capability_minor, gpu->memory_gbps);
    print_peak(gpu->bf16_tflops);
    puts(cost_fit_is_own(gpu) ? "  own" : "");
}

static void print_table(const struct gpu *list, size_t count)
{
    printf("%-26s %8s  %4s  %10s  %6s %12s  FIT\n", "NAME", "GiB", "SMS",
           "CAPABILITY", "GB/s", "BF16 TFLOP/s");
    for (size_t i = 0; i < count; i++)
        print_row(&list[i]);
}

/* One GPU's values. */

static void format_value(const struct gpu_field *field, const struct gpu *gpu,
                         char *out, size_t size)
{
    const char *at = (const char *)gpu + field->offset;
    uint32_t u32;
    uint64_t u64;
    double number;

    switch (field->kind) {
    case GPU_TEXT:
        snprintf(out, size, "%s", at);
        break;
    case GPU_CAPABILITY:
        snprintf(out, size, "%" PRIu32 ".%" PRIu32, gpu->capability_major,
                 gpu->capability_minor);
        break;
    case GPU_U32:
        memcpy(&u32, at, sizeof u32);
        snprintf(out, size, "%" PRIu32, u32);
        break;
    case GPU_U64:
        memcpy(&u64, at, sizeof u64);
        snprintf(out, size, "%" PRIu64, u64);
        break;
    case GPU_NUMBER:
        memcpy(&number, at, sizeof number);
        snprintf(out, size, "%.15g", number);
        break;
    }
}

static bool list_has(const cJSON *list, const char *text)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item) && !strcmp(item->valuestring, text))
            return true;
    }
    return false;
}

/* Which of the GPU's sources tells KEY, from 1; 0: none. */
static int source_of(const cJSON *card, const char *key)
{
    const cJSON *source;
    int number = 0;

    cJSON_ArrayForEach(source, cJSON_GetObjectItem(card, "sources"))
    {
        number++;
        if (list_has(cJSON_GetObjectItem(source, "keys"), key))
            return number;
    }
    return 0;
}

/* Why VALUE is what it is: "[2]" of the sources, or how else. */
static void format_source(const cJSON *card, const char *key, char *out,
                          size_t size)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(card, key);
    int number = source_of(card, key);
    bool has_base = cJSON_GetObjectItemCaseSensitive(card, "base");
    const char *how = "";

    if (!item && has_base)
        how = "base, or derived";
    else if (!item || cJSON_IsNull(item))
        how = strcmp(key, "nccl_bytes") != 0 ? "derived" : "by nccl_channels";
    if (number)
        snprintf(out, size, "%s%s[%d]", how, *how ? " " : "", number);
    else
        snprintf(out, size, "%s", how);
}

static void print_values(const struct gpu *gpu, const cJSON *card)
{
    char value[96], source[48];

    for (size_t i = 0; i < gpu_field_count; i++) {
        const struct gpu_field *field = &gpu_fields[i];
        format_value(field, gpu, value, sizeof value);
        format_source(card, field->key, source, sizeof source);
        if (source[0])
            printf("%-29s %-32s %s\n", field->key, value, source);
        else
            printf("%-29s %s\n", field->key, value);
    }
}

/* Prints TEXT after LABEL, broken at spaces and indented as far. */
static void print_wrapped(const char *label, const char *text)
{
    size_t indent = strlen(label);
    size_t column = indent;

    char *printable = xstrdup(text);
    text_make_printable(printable);
    text = printable;
    fputs(label, stdout);
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > LINE_MAX_WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)word, text);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    free(printable);
    putchar('\n');
}

static void print_aliases(const cJSON *card)
{
    const cJSON *alias;
    char *list = xstrdup("");

    cJSON_ArrayForEach(alias, cJSON_GetObjectItem(card, "aliases"))
    {
        const char *name = cJSON_GetStringValue(alias);
        char *longer =
            xasprintf("%s%s%s", list, *list ? ", " : "", name ? name : "?");
        free(list);
        list = longer;
    }
    if (*list)
        print_wrapped("aliases                       ", list);
    free(list);
}

/* How far off what is derived may be: data/gpus/README.md says why. */
static const struct range {
    const char *key, *text;
} ranges[] = {
    {"context_bytes",
     "within 7 % of what is published for nine GPUs; three GPUs "
     "that may have had a display took 15 to 44 % more"},
    {"context_torch_bytes", "within 20 MiB of what out-of-memory texts of nine "
                            "GPUs say; nothing more than the bare context up "
                            "to PyTorch 1.13"},
    {"context_driver_bytes", "3 to 9 MiB"},
    {"modules_eager_bytes", "362 MiB (PyTorch 1.13) to what the rule says, and "
                            "cuDNN's 293 to 390 where it is used"},
    {"cublas_bytes", "a handle: 60 MB to 66 MiB on 9.x and 10.x, 2 to 20 MiB "
                     "on others"},
    {"cudnn_bytes", "a handle: 0 to 9 MiB"},
    {"cufft_bytes", "2 to 40 MiB: kernels, and how large all are is not known"},
    {"cufft_plan_bytes", "a plan: 0.4 to 0.7 MiB"},
    {"cusparse_bytes", "2 to 88 MiB: of its kernels those that are used, "
                       "assumed to be a twentieth"},
    {"cusolver_bytes", "a handle: 2 to 250 MB"},
    {"streams_bytes", "0 to 70 MiB: an H200's, scaled with the threads"},
    {"managed_bytes", "0 to 126 MiB: an H200's"},
    {"nccl_first_bytes", "0 to 486 MiB: an H200's, scaled with the threads"},
    {"nccl_channels", "as in logs of six GPUs; fewer if a network card limits "
                      "them, half on reduced variants such as the H800"},
};

static void print_ranges(const cJSON *card)
{
    char label[32];

    fputs("\nWhat is derived follows from the compute capability and the "
          "values above.\nHow far off it may be:\n",
          stdout);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const cJSON *item = cJSON_GetObjectItem(card, ranges[i].key);
        if (item && !cJSON_IsNull(item))
            continue;
        snprintf(label, sizeof label, "  %-19s  ", ranges[i].key);
        print_wrapped(label, ranges[i].text);
    }
}

static void print_sources(const cJSON *card)
{
    const cJSON *source;
    char label[16];
    int number = 0;

    cJSON_ArrayForEach(source, cJSON_GetObjectItem(card, "sources"))
    {
        const char *text =
            cJSON_GetStringValue(cJSON_GetObjectItem(source, "source"));
        if (number == 0)
            fputs("\nSources:\n", stdout);
        snprintf(label, sizeof label, "%3d  ", ++number);
        print_wrapped(label, text ? text : "?");
    }
}

/* JSON. */

static void json_add_field(cJSON *object, const struct gpu_field *field,
                           const struct gpu *gpu)
{
    char value[96];

    format_value(field, gpu, value, sizeof value);
    if (field->kind == GPU_TEXT || field->kind == GPU_CAPABILITY)
        cJSON_AddStringToObject(object, field->key, value);
    else
        cJSON_AddRawToObject(object, field->key, value);
}

static cJSON *json_card(const struct gpu *gpu)
{
    cJSON *object = cJSON_CreateObject();

    for (size_t i = 0; i < gpu_field_count; i++)
        json_add_field(object, &gpu_fields[i], gpu);
    cJSON_AddBoolToObject(object, "own_fit", cost_fit_is_own(gpu));
    return object;
}

static void json_print_list(const struct gpu *list, size_t count)
{
    cJSON *gpus = cJSON_CreateArray();

    for (size_t i = 0; i < count; i++)
        cJSON_AddItemToArray(gpus, json_card(&list[i]));
    schema_print_as("gpus", gpus, stdout);
}

static void json_print_card(const struct gpu *gpu, const cJSON *card)
{
    static const char *const prose[] = {"aliases", "base", "sources"};
    cJSON *object = json_card(gpu);

    for (size_t i = 0; i < sizeof prose / sizeof *prose; i++) {
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(card, prose[i]);
        if (item)
            cJSON_AddItemToObject(object, prose[i], cJSON_Duplicate(item, 1));
    }
    schema_print_as("gpu", object, stdout);
}

static int list_all(bool json)
{
    struct err err = {""};
    struct gpu *list;
    size_t count;

    if (gpu_list(&list, &count, &err))
        return cmd_fail(CMD_FAILED, &err);
    if (json)
        json_print_list(list, count);
    else
        print_table(list, count);
    free(list);
    return CMD_OK;
}

/* The GPU's own text, for what struct gpu leaves out. */
static cJSON *card_parse(const char *path, struct err *err)
{
    size_t length;
    char *text = json_text_read(path, &length, err);
    cJSON *card = text ? json_text_parse(text, length, path, err) : NULL;

    free(text);
    return card;
}

static int show_one(const char *name, bool json)
{
    struct err err = {""};
    char path[PATH_MAX];
    struct gpu gpu;
    cJSON *card = NULL;

    if (gpu_path(name, path, sizeof path, &err) || gpu_load(name, &gpu, &err) ||
        !(card = card_parse(path, &err)))
        return cmd_fail(CMD_FAILED, &err);
    if (json) {
        json_print_card(&gpu, card);
    } else {
        print_values(&gpu, card);
        print_aliases(card);
        print_sources(card);
        print_ranges(card);
    }
    cJSON_Delete(card);
    return CMD_OK;
}

int cmd_gpus(int argc, char **argv)
{
    struct values values = {0};
    struct operands operands;
    int status = cmd_start(&options, argc, argv, &values, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    if (operands.count == 1)
        return show_one(operands.values[0], values.json);
    return list_all(values.json);
}
