/* SPDX-License-Identifier: Apache-2.0
 * Workspaces of convolutions: data/workspaces/cudnn.csv says them, with the
 * evidence for each row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/work/library_call.h"
#include "capture/core/memory/device.h"
#include "capture/cudnn/convolution.h"
#include "common/trace/convolution_key.h"

/* One row; its texts are patterns: "*" any, "a|b" either. */
struct rule {
    const char *operation, *type, *math, *layout, *groups, *filter, *stride;
    const char *channels, *outputs;
    const char *height, *area, *positions;
    const char *gpu, *cudnn; /* where it was measured; "*": nowhere */
    double x, w, y;   /* multiples of the tensors' bytes */
    const char *sums; /* of the filter's gradient, as sums_count reads it */
    uint64_t constant_bytes;
    uint64_t align;      /* channels are rounded up to this */
    uint64_t most_bytes; /* the row is for workspaces up to this; 0: all */
};

static const struct rule rules[] = {
#include "cudnn_workspace.inc" /* made from the table by capture.mk */
};

/* The same columns of a convolution. */
struct problem {
    const char *operation, *type, *math, *layout, *groups;
    char filter[32], stride[32], channels[24], outputs[24], gpu[8], cudnn[8];
    int64_t height, area, positions;
    uint32_t sm_count;
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

/* "N", "N-M", "%N" (a multiple of N) or "*". */
static bool range_fits(const char *range, int64_t number)
{
    char *end;

    if (!strcmp(range, "*"))
        return true;
    if (*range == '%')
        return number % strtoll(range + 1, NULL, 10) == 0;
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
           pattern_fits(rule->outputs, p->outputs) &&
           range_fits(rule->height, p->height) &&
           range_fits(rule->area, p->area) &&
           range_fits(rule->positions, p->positions);
}

/* Was its size measured on such a GPU ("9.0", or "9.0/132" where the number
 * of SMs decides), with such a cuDNN? */
static bool rule_is_own(const struct rule *rule, const struct problem *p)
{
    size_t capability = strcspn(rule->gpu, "/");

    return strlen(p->gpu) == capability &&
           !strncmp(rule->gpu, p->gpu, capability) &&
           (!rule->gpu[capability] ||
            strtoul(rule->gpu + capability + 1, NULL, 10) == p->sm_count) &&
           pattern_fits(rule->cudnn, p->cudnn);
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
    sizes_print(p.outputs, sizeof p.outputs, c->w.dims, c->w.count > 1);
    p.area = 1;
    for (int i = 2; i < c->y.count; i++)
        p.area *= c->y.dims[i];
    p.positions = p.area * c->y.dims[0];
    const struct gpu *gpu = memsim_device_gpu();
    if (gpu) {
        snprintf(p.gpu, sizeof p.gpu, "%u.%u", gpu->capability_major % 100,
                 gpu->capability_minor % 100);
        p.sm_count = gpu->sm_count;
    }
    int major = 0;
    cudnnGetProperty(MAJOR_VERSION, &major);
    snprintf(p.cudnn, sizeof p.cudnn, "%d", major % 100);
    return p;
}

/* The elements of SHAPE with the dimensions in MASK rounded up to ALIGN. */
static uint64_t padded_elements(const struct shape *shape, unsigned mask,
                                uint64_t align)
{
    uint64_t elements = 1;

    for (int i = 0; i < shape->count; i++) {
        uint64_t dim = (uint64_t)shape->dims[i];

        elements *= mask >> i & 1 ? (dim + align - 1) / align * align : dim;
    }
    return elements;
}

/* Images have their channels second; a filter has the output's first and those
 * of one group of the input second. */
static double tensor_bytes(const struct shape *shape, unsigned mask,
                           uint64_t align)
{
    return (double)(padded_elements(shape, mask, align) *
                    cudnn_type_bytes(shape->type));
}

/* Which dimensions of C's filter are channels that may be rounded up. */
static unsigned filter_channels(const struct convolution *c)
{
    return c->groups > 1 ? 1 : 3;
}

/* How often the SMs go into the tiles that a product of the filter's gradient
 * is cut into: of 128x128 values, of 64 where there are no more. Each then sums
 * a share of the pictures. Once is not worth a copy. */
static double split_count(const struct convolution *c, uint32_t sm_count)
{
    uint64_t rows = (uint64_t)c->w.dims[0];
    uint64_t columns = padded_elements(&c->w, 0, 1) / (rows ? rows : 1);
    uint64_t wide = rows <= 64 || c->w.dims[1] <= 64 ? 64 : 128;
    uint64_t tiles = (rows + 127) / 128 * ((columns + wide - 1) / wide);
    uint64_t splits = tiles ? sm_count / tiles : 0;

    return splits > 1 ? (double)splits : 0;
}

/* "N" times the number, "T" times the splits, or just the number. */
static double sums_count(const char *sums, const struct convolution *c,
                         uint32_t sm_count)
{
    char *unit;
    double count = strtod(sums, &unit);

    if (*unit == 'N')
        return count * (double)c->x.dims[0];
    return *unit == 'T' ? count * split_count(c, sm_count) : count;
}

static uint64_t rule_bytes(const struct rule *rule, const struct problem *p,
                           const struct convolution *c)
{
    unsigned channels = filter_channels(c);
    double sum = 4 * (double)padded_elements(&c->w, channels, rule->align);
    double bytes = rule->x * tensor_bytes(&c->x, 2, rule->align) +
                   rule->w * tensor_bytes(&c->w, channels, rule->align) +
                   rule->y * tensor_bytes(&c->y, 2, rule->align) +
                   sum * sums_count(rule->sums, c, p->sm_count);

    return (uint64_t)(bytes + 0.5) + rule->constant_bytes;
}

static bool rule_takes(const struct rule *rule, const struct problem *p,
                       const struct convolution *c)
{
    return rule_fits(rule, p) && (!rule->most_bytes ||
                                  rule_bytes(rule, p, c) <= rule->most_bytes);
}

static const struct rule *rule_find(const struct problem *p,
                                    const struct convolution *c)
{
    const size_t count = sizeof rules / sizeof *rules;

    for (size_t i = 0; i < count; i++)
        if (rule_is_own(&rules[i], p) && rule_takes(&rules[i], p, c))
            return &rules[i];
    for (size_t i = 0; i < count; i++)
        if (rule_takes(&rules[i], p, c))
            return &rules[i];
    return NULL;
}

/* "7.0" as 70; "*" is 0. */
static unsigned capability_of(const struct rule *rule)
{
    unsigned major = 0, minor = 0;

    return sscanf(rule->gpu, "%u.%u", &major, &minor) == 2 ? major * 10 + minor
                                                           : 0;
}

static uint64_t key_of(const struct convolution *c)
{
    struct text text = {0};

    convolution_describe(c, &text);
    return convolution_key(c->operation, text.bytes, text.used);
}

struct workspace convolution_workspace(const struct convolution *convolution)
{
    const struct problem problem = problem_of(convolution);
    const struct rule *rule = rule_find(&problem, convolution);

    if (convolution->engine == ENGINE_SMALL || !rule)
        return (struct workspace){0};
    struct workspace w = {.bytes = rule_bytes(rule, &problem, convolution),
                          .gpu = capability_of(rule)};
    w.most_bytes = w.bytes;
    if (!rule_is_own(rule, &problem)) {
        uint64_t copies = shape_bytes(&convolution->x) +
                          shape_bytes(&convolution->w) +
                          shape_bytes(&convolution->y);
        w.most_bytes = 4 * w.bytes > copies ? 4 * w.bytes : copies;
    }
    if (!memsim_workspaces_learnt())
        return w;
    uint64_t learnt = memsim_call_workspace(key_of(convolution), w.bytes);
    if (learnt != w.bytes)
        w.bytes = w.most_bytes = learnt;
    return w;
}
