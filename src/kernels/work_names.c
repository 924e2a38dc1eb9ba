/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/work.h"

#include <stddef.h>
#include <string.h>

#define NAME(id, name, shape) [WORK_##id] = #name,
static const char *const families[WORK_FAMILIES] = {WORK_FAMILY_LIST(NAME)};
#undef NAME

static const char *const types[WORK_TYPES] = {
    [WORK_FP32] = "fp32", [WORK_TF32] = "tf32",       [WORK_FP16] = "fp16",
    [WORK_BF16] = "bf16", [WORK_FP64] = "fp64",       [WORK_FP8] = "fp8",
    [WORK_INT8] = "int8", [WORK_INTEGER] = "integer", [WORK_FP4] = "fp4",
};

const char *work_family_name(enum work_family family)
{
    return (unsigned)family < WORK_FAMILIES ? families[family] : "unknown";
}

enum work_family work_family_find(const char *name)
{
    for (int i = 0; i < WORK_FAMILIES; i++)
        if (!strcmp(families[i], name))
            return (enum work_family)i;
    return WORK_OTHER;
}

const char *work_type_name(enum work_type type)
{
    return (unsigned)type < WORK_TYPES ? types[type] : "unknown";
}

static const char *const kernels[WORK_VARIANTS] = {
    [WORK_ATTENTION_FLASH2] = "flash2",
    [WORK_ATTENTION_FLASH3] = "flash3",
    [WORK_ATTENTION_EFFICIENT] = "efficient",
    [WORK_ATTENTION_CUDNN] = "cudnn",
};

static const char *const groupings[WORK_VARIANTS] = {"dense", "depthwise"};
static const char *const batchings[WORK_VARIANTS] = {"single", "batched"};
static const char *const sorts[WORK_VARIANTS] = {
    [WORK_SORT_PASSES] = "passes",
    [WORK_SORT_BLOCKS] = "blocks",
    [WORK_SORT_SELECT] = "select",
};

static bool is_attention(enum work_family family)
{
    return family == WORK_ATTENTION_FORWARD ||
           family == WORK_ATTENTION_BACKWARD;
}

static bool is_convolution(enum work_family family)
{
    return family >= WORK_CONVOLUTION_FORWARD &&
           family <= WORK_CONVOLUTION_WGRAD;
}

unsigned work_variant(const struct work *work)
{
    if (is_attention(work->family))
        return (unsigned)work->attention.kernel % WORK_VARIANTS;
    if (work->family == WORK_GEMM)
        return work->gemm.batch > 1;
    if (work->family == WORK_SORT)
        return work->sort % WORK_VARIANTS;
    return is_convolution(work->family) && work->convolution.groups > 1 &&
           work->convolution.groups == work->convolution.c;
}

const char *work_variant_name(enum work_family family, unsigned variant)
{
    if (variant >= WORK_VARIANTS)
        return NULL;
    return is_attention(family)     ? kernels[variant]
           : is_convolution(family) ? groupings[variant]
           : family == WORK_GEMM    ? batchings[variant]
           : family == WORK_SORT    ? sorts[variant]
                                    : NULL;
}
