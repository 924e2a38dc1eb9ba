/* SPDX-License-Identifier: Apache-2.0
 * The text of one GPU's file to struct gpu. */
#include "common/base/err.h"
#include "common/catalogue/gpu.h"
#include "common/catalogue/gpu_field.h"
#include "common/base/json_text.h"
#include "common/base/suggest.h"
#include "common/base/text_clean.h"
#include "common/base/units.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *origin;
    const char *text;
    size_t length;
    struct gpu gpu;
    struct err *err;
};

/* "origin:line: ", the line that of KEY, where it can be found. */
static int fail_key(struct reader *r, const char *key, const char *cause)
{
    unsigned line = json_text_key_line(r->text, r->length, key);

    if (line)
        return err_set(r->err, "%s:%u: \"%s\" %s", r->origin, line, key, cause);
    return err_set(r->err, "%s: \"%s\" %s", r->origin, key, cause);
}

/* Keys for people: who else the GPU is, and where each value comes from. */
static bool key_is_prose(const char *key)
{
    static const char *const keys[] = {"base", "aliases", "sources"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!strcmp(key, keys[i]))
            return true;
    return false;
}

static int fail_unknown(struct reader *r, const char *key)
{
    char cause[128];
    struct suggest nearest;

    suggest_start(&nearest, key, 1);
    for (size_t i = 0; i < gpu_field_count; i++)
        suggest_offer(&nearest, gpu_fields[i].key);
    if (nearest.count)
        snprintf(cause, sizeof cause,
                 "is no key of a GPU; did you mean \"%s\"?", nearest.names[0]);
    else
        snprintf(cause, sizeof cause,
                 "is no key of a GPU; data/gpus/README.md lists them");
    return fail_key(r, key, cause);
}

static int read_text(struct reader *r, const struct gpu_field *field,
                     const cJSON *item)
{
    char cause[64];
    char *at = (char *)&r->gpu + field->offset;

    if (!cJSON_IsString(item) || !item->valuestring[0])
        return fail_key(r, field->key, "must be a text");
    size_t length = strlen(item->valuestring);
    if (length >= field->size) {
        snprintf(cause, sizeof cause, "is longer than %zu characters",
                 field->size - 1);
        return fail_key(r, field->key, cause);
    }
    memset(at, 0, field->size);
    memcpy(at, item->valuestring, length);
    text_make_printable(at);
    return 0;
}

/* "9.0", "12.1": one or two digits, a point, one digit. */
static bool is_capability(const cJSON *item)
{
    if (!cJSON_IsString(item))
        return false;
    size_t digits = strspn(item->valuestring, "0123456789");
    const char *rest = item->valuestring + digits;

    return digits >= 1 && digits <= 2 && rest[0] == '.' &&
           isdigit((unsigned char)rest[1]) && !rest[2];
}

static int read_capability(struct reader *r, const struct gpu_field *field,
                           const cJSON *item)
{
    if (!is_capability(item))
        return fail_key(r, field->key, "must be a text like \"9.0\"");
    unsigned tenths = (unsigned)lround(strtod(item->valuestring, NULL) * 10);
    if (tenths < 60)
        return fail_key(r, field->key, "is below 6.0, which is not modelled");
    r->gpu.capability_major = tenths / 10;
    r->gpu.capability_minor = tenths % 10;
    return 0;
}

static int fail_range(struct reader *r, const struct gpu_field *field,
                      bool whole)
{
    char cause[96];

    snprintf(cause, sizeof cause, "must be a %snumber from %.15g to %.15g",
             whole ? "whole " : "", field->min, field->max);
    return fail_key(r, field->key, cause);
}

static int read_number(struct reader *r, const struct gpu_field *field,
                       const cJSON *item)
{
    char *at = (char *)&r->gpu + field->offset;
    bool whole = field->kind != GPU_NUMBER;
    double value = item->valuedouble;

    if (!cJSON_IsNumber(item) || !(value >= field->min) ||
        !(value <= field->max) || (whole && value != floor(value)))
        return fail_range(r, field, whole);
    if (field->kind == GPU_U32)
        memcpy(at, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    else if (field->kind == GPU_U64)
        memcpy(at, &(uint64_t){(uint64_t)value}, sizeof(uint64_t));
    else
        memcpy(at, &value, sizeof value);
    return 0;
}

static int read_key(struct reader *r, const cJSON *item)
{
    const struct gpu_field *field;

    if (key_is_prose(item->string))
        return 0;
    field = gpu_field_find(item->string);
    if (!field)
        return fail_unknown(r, item->string);
    if (cJSON_IsNull(item)) {
        gpu_field_forget(field, &r->gpu);
        return 0;
    }
    if (field->kind == GPU_TEXT)
        return read_text(r, field, item);
    if (field->kind == GPU_CAPABILITY)
        return read_capability(r, field, item);
    return read_number(r, field, item);
}

/* cJSON keeps both of two equal keys; the second would silently win. */
static int read_keys(struct reader *r, const cJSON *root)
{
    for (const cJSON *item = root->child; item; item = item->next) {
        if (cJSON_GetObjectItemCaseSensitive(root, item->string) != item)
            return fail_key(r, item->string, "is there twice");
        if (read_key(r, item))
            return -1;
    }
    return 0;
}

static int start_from_base(struct reader *r, const cJSON *root, gpu_find *find)
{
    const cJSON *base = cJSON_GetObjectItemCaseSensitive(root, "base");

    if (!base) {
        for (size_t i = 0; i < gpu_field_count; i++)
            gpu_field_forget(&gpu_fields[i], &r->gpu);
        return 0;
    }
    if (!cJSON_IsString(base))
        return fail_key(r, "base", "must be a text");
    if (!find)
        return fail_key(r, "base",
                        "is not allowed here: this GPU is another's base");
    if (find(base->valuestring, &r->gpu, r->err))
        return -1;
    gpu_field_forget(gpu_field_find("name"), &r->gpu);
    r->gpu.is_variant = 1;
    return 0;
}

/* A slice of a GPU has the same clocks: a peak of the base that the file does
 * not give goes with the number of SMs, which was BASE_SMS. */
static void scale_peaks(struct reader *r, const cJSON *root, uint32_t base_sms)
{
    static const char *const peaks[] = {
        "fp64_tflops", "fp64_tensor_tflops", "fp32_tflops",
        "tf32_tflops", "fp16_tflops",        "bf16_tflops",
        "fp8_tflops",  "int8_tops",          "fp4_tflops"};

    for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++) {
        const struct gpu_field *field = gpu_field_find(peaks[i]);
        double *peak = (double *)((char *)&r->gpu + field->offset);
        if (!cJSON_GetObjectItemCaseSensitive(root, peaks[i]))
            *peak *= (double)r->gpu.sm_count / base_sms;
    }
}

/* Under matrix products a GPU runs at its power limit. Two limits' rates differ
 * by this power of the watts; data/gpus/README.md, "Clocks under load". */
#define CLOCK_OF_WATTS 0.85

/* The clock under matrix products of a file whose base is BASE: what the file
 * says, or what its lower power limit leaves. */
static void set_load_clock(struct reader *r, const cJSON *root,
                           const struct gpu *base)
{
    struct gpu *gpu = &r->gpu;
    double watts = (double)gpu->power_watts / base->power_watts;

    if (!cJSON_GetObjectItemCaseSensitive(root, "clock_load_mhz")) {
        gpu->clock_load_mhz = base->clock_load_mhz;
        if (watts < 1)
            gpu->clock_load_mhz =
                (uint32_t)lround(base->clock_load_mhz *
                                 pow(watts, CLOCK_OF_WATTS));
    }
    gpu->load_ratio = base->load_ratio * gpu->clock_load_mhz /
                      base->clock_load_mhz;
}

/* "/home/me/my-gpu.json" names "my-gpu". */
static void name_after_origin(struct reader *r)
{
    const char *slash = strrchr(r->origin, '/');
    const char *name = slash ? slash + 1 : r->origin;

    snprintf(r->gpu.name, sizeof r->gpu.name, "%.*s", (int)strcspn(name, "."),
             name);
    if (!r->gpu.name[0])
        strcpy(r->gpu.name, "unnamed");
}

static int check_whole(struct reader *r)
{
    const struct gpu *gpu = &r->gpu;

    for (size_t i = 0; i < gpu_field_count; i++)
        if (!gpu_field_known(&gpu_fields[i], gpu))
            return err_set(r->err,
                           "%s: \"%s\" is missing, and nothing else tells it",
                           r->origin, gpu_fields[i].key);
    if (gpu->context_bytes >= gpu->memory_bytes)
        return fail_key(r, "context_bytes", "is more than memory_bytes");
    if (gpu->context_torch_bytes >= gpu->memory_bytes)
        return fail_key(r, "context_torch_bytes", "is more than memory_bytes");
    if (gpu->context_torch_bytes < gpu->context_bytes)
        return fail_key(r, "context_torch_bytes", "is less than context_bytes");
    if (gpu->smi_memory_mib * MIB + MIB <= gpu->memory_bytes)
        return fail_key(r, "smi_memory_mib", "is less than memory_bytes");
    if (gpu->shared_per_block_optin_bytes > gpu->shared_per_sm_bytes)
        return fail_key(r, "shared_per_block_optin_bytes",
                        "is more than shared_per_sm_bytes");
    return 0;
}

/* CUDA's total and nvidia-smi's go together: a file that replaces one of a
 * base's replaces the other too, so that the two never contradict. */
static void forget_other_total(struct reader *r, const cJSON *root)
{
    bool cuda = cJSON_GetObjectItemCaseSensitive(root, "memory_bytes");
    bool smi = cJSON_GetObjectItemCaseSensitive(root, "smi_memory_mib");

    if (cuda && !smi)
        gpu_field_forget(gpu_field_find("smi_memory_mib"), &r->gpu);
    if (smi && !cuda)
        gpu_field_forget(gpu_field_find("memory_bytes"), &r->gpu);
}

/* Memory that grows with the threads of a GPU is not its base's any more where
 * the file changes these; nor is the context after a kernel where it changes
 * the bare one. */
static void forget_grown(struct reader *r, const cJSON *root, bool resized)
{
    static const char *const keys[] = {"streams_bytes", "nccl_first_bytes",
                                       "context_torch_bytes"};
    size_t last = sizeof keys / sizeof *keys - 1;
    bool context = cJSON_GetObjectItemCaseSensitive(root, "context_bytes");

    for (size_t i = resized ? 0 : last; i <= last && (resized || context); i++)
        if (!cJSON_GetObjectItemCaseSensitive(root, keys[i]))
            gpu_field_forget(gpu_field_find(keys[i]), &r->gpu);
}

/* The values that the others are derived from. */
static int check_given(struct reader *r)
{
    static const char *const keys[] = {"compute_capability", "sm_count",
                                       "clock_boost_mhz"};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!gpu_field_known(gpu_field_find(keys[i]), &r->gpu))
            return err_set(r->err,
                           "%s: \"%s\" is missing; give it, or a \"base\"",
                           r->origin, keys[i]);
    if (!gpu_field_known(gpu_field_find("memory_bytes"), &r->gpu) &&
        !gpu_field_known(gpu_field_find("smi_memory_mib"), &r->gpu))
        return err_set(r->err,
                       "%s: \"memory_bytes\" is missing; give it, or "
                       "nvidia-smi's \"smi_memory_mib\", or a \"base\"",
                       r->origin);
    return 0;
}

static int read_root(struct reader *r, const cJSON *root, gpu_find *find)
{
    if (!cJSON_IsObject(root))
        return err_set(r->err, "%s:1: the file must hold one JSON object",
                       r->origin);
    if (start_from_base(r, root, find))
        return -1;
    struct gpu base = r->gpu;
    if (read_keys(r, root))
        return -1;
    bool resized = r->gpu.is_variant && r->gpu.sm_count != base.sm_count;
    if (resized)
        scale_peaks(r, root, base.sm_count);
    if (r->gpu.is_variant)
        set_load_clock(r, root, &base);
    else
        r->gpu.load_ratio = 1;
    forget_other_total(r, root);
    forget_grown(r, root, resized);
    if (check_given(r))
        return -1;
    if (!r->gpu.name[0])
        name_after_origin(r);
    gpu_field_defaults(&r->gpu);
    return check_whole(r);
}

int gpu_load_text(const char *json, size_t length, const char *origin,
                  gpu_find *find, struct gpu *gpu, struct err *err)
{
    struct reader r = {
        .origin = origin, .text = json, .length = length, .err = err};
    cJSON *root = json_text_parse(json, length, origin, err);

    if (!root)
        return -1;
    int rc = read_root(&r, root, find);
    cJSON_Delete(root);
    if (!rc)
        *gpu = r.gpu;
    return rc;
}
