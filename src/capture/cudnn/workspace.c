/* SPDX-License-Identifier: Apache-2.0
 * Workspaces of convolutions: data/workspaces/cudnn.csv says them, with the
 * evidence for each row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/memory/device.h"
#include "capture/cudnn/convolution.h"

/* One row; its texts are patterns: "*" any, "a|b" either. */
struct rule {
    const char *operation, *type, *math, *layout, *groups, *filter, *stride;
    const char *channels, *height;
    const char *gpu, *cudnn; /* where it was measured; "*": nowhere */
    double x, w, y; /* multiples of the tensors' bytes */
    uint64_t constant_bytes;
    uint64_t align; /* channels are rounded up to this */
};

static const struct rule rules[] = {
#include "cudnn_workspace.inc" /* made from the table by capture.mk */
};

/* The same columns of a convolution. */
struct problem {
    const char *operation, *type, *math, *layout, *groups;
    char filter[32], stride[32], channels[24], gpu[8], cudnn[8];
    int64_t height;
};

static bool pattern_fits(const char *pattern, const char *text)
{
    size_t length = strlen(text);

    if (!strcmp(pattern, "*"))
        return true;
    for (const char *p = pattern; p; p = strchr(p, '|')) {
        p += *p == '|';
        if (!strncmp(p, text, length) && (!p[length] || p[length] == '|'))
            return true;
    }
    return false;
}

static bool range_fits(const char *range, int64_t number)
{
    char *end;

    if (!strcmp(range, "*"))
        return true;
    int64_t low = strtoll(range, &end, 10);
    int64_t high = *end == '-' ? strtoll(end + 1, NULL, 10) : low;
    return number >= low && number <= high;
}

static bool rule_fits(const struct rule *rule, const struct problem *p)
{
    return pattern_fits(rule->operation, p->operation) &&
           pattern_fits(rule->type, p->type) &&
           pattern_fits(rule->math, p->math) &&
           pattern_fits(rule->layout, p->layout) &&
           pattern_fits(rule->groups, p->groups) &&
           pattern_fits(rule->filter, p->filter) &&
           pattern_fits(rule->stride, p->stride) &&
           pattern_fits(rule->channels, p->channels) &&
           range_fits(rule->height, p->height);
}

/* Was its size measured on such a GPU, with such a cuDNN? */
static bool rule_is_own(const struct rule *rule, const struct problem *p)
{
    return strcmp(rule->gpu, "*") && pattern_fits(rule->gpu, p->gpu) &&
           pattern_fits(rule->cudnn, p->cudnn);
}

static const struct rule *rule_find(const struct problem *p)
{
    const size_t count = sizeof rules / sizeof *rules;

    for (size_t i = 0; i < count; i++)
        if (rule_is_own(&rules[i], p) && rule_fits(&rules[i], p))
            return &rules[i];
    for (size_t i = 0; i < count; i++)
        if (rule_fits(&rules[i], p))
            return &rules[i];
    return NULL;
}

static const char *type_of(const struct convolution *c)
{
    switch ((int)c->x.type) {
    case CUDNN_DATA_FLOAT:
        return "fp32";
    case CUDNN_DATA_HALF:
        return "fp16";
    case CUDNN_DATA_BFLOAT16:
        return "bf16";
    default:
        return cudnn_type_name(c->x.type);
    }
}

static const char *groups_of(const struct convolution *c)
{
    if (c->groups <= 1)
        return "dense";
    return c->groups == c->x.dims[1] ? "depthwise" : "grouped";
}

/* "7x7" */
static void sizes_print(char *to, size_t bytes, const int64_t *sizes, int count)
{
    size_t used = 0;

    *to = '\0';
    for (int i = 0; i < count && used < bytes; i++)
        used += (size_t)snprintf(to + used, bytes - used, "%s%lld",
                                 i ? "x" : "", (long long)sizes[i]);
}

static struct problem problem_of(const struct convolution *c)
{
    static const char *const operations[] = {
        [CONVOLUTION_FORWARD] = "forward",
        [CONVOLUTION_BACKWARD_DATA] = "dgrad",
        [CONVOLUTION_BACKWARD_FILTER] = "wgrad",
    };
    struct problem p = {
        .operation = operations[c->operation],
        .type = type_of(c),
        .math = c->engine == ENGINE_TENSOR_CORE ? "tensor" : "plain",
        .layout = convolution_is_nhwc(c) ? "nhwc" : "nchw",
        .groups = groups_of(c),
        .height = c->y.count > 2 ? c->y.dims[2] : 0,
    };

    sizes_print(p.filter, sizeof p.filter, c->w.dims + 2, c->w.count - 2);
    sizes_print(p.stride, sizeof p.stride, c->stride, c->spatial_dims);
    sizes_print(p.channels, sizeof p.channels, c->x.dims + 1, c->x.count > 1);
    const struct gpu *gpu = memsim_device_gpu();
    if (gpu)
        snprintf(p.gpu, sizeof p.gpu, "%u.%u", gpu->capability_major % 100,
                 gpu->capability_minor % 100);
    snprintf(p.cudnn, sizeof p.cudnn, "%zu", cudnnGetVersion() / 10000 % 100);
    return p;
}

/* The bytes of SHAPE with the dimensions in MASK rounded up to ALIGN. */
static uint64_t padded_bytes(const struct shape *shape, unsigned mask,
                             uint64_t align)
{
    uint64_t bytes = cudnn_type_bytes(shape->type);

    for (int i = 0; i < shape->count; i++) {
        uint64_t dim = (uint64_t)shape->dims[i];

        bytes *= mask >> i & 1 ? (dim + align - 1) / align * align : dim;
    }
    return bytes;
}

/* Images and filters have their input channels second; a filter's first
 * dimension is the output's channels. */
static uint64_t rule_bytes(const struct rule *rule, const struct convolution *c)
{
    double bytes = rule->x * (double)padded_bytes(&c->x, 2, rule->align) +
                   rule->w * (double)padded_bytes(&c->w, 3, rule->align) +
                   rule->y * (double)padded_bytes(&c->y, 2, rule->align);

    return (uint64_t)(bytes + 0.5) + rule->constant_bytes;
}

/* "7.0" as 70; "*" is 0. */
static unsigned capability_of(const struct rule *rule)
{
    unsigned major = 0, minor = 0;

    return sscanf(rule->gpu, "%u.%u", &major, &minor) == 2 ? major * 10 + minor
                                                           : 0;
}

struct workspace convolution_workspace(const struct convolution *convolution)
{
    const struct problem problem = problem_of(convolution);
    const struct rule *rule = rule_find(&problem);

    if (convolution->engine == ENGINE_SMALL || !rule)
        return (struct workspace){0};
    struct workspace w = {.bytes = rule_bytes(rule, convolution),
                          .gpu = capability_of(rule)};
    w.most_bytes = w.bytes;
    if (!rule_is_own(rule, &problem)) {
        uint64_t copies = shape_bytes(&convolution->x) +
                          shape_bytes(&convolution->w) +
                          shape_bytes(&convolution->y);
        w.most_bytes = 4 * w.bytes > copies ? 4 * w.bytes : copies;
    }
    return w;
}
