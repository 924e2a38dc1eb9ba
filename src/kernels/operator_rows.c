/* SPDX-License-Identifier: Apache-2.0
 * What an operator goes over: elements, rows and columns, planes. */
#include "kernels/operator_internal.h"

#include <string.h>

#include "common/base/text_begins.h"

static const struct operator_argument *
largest_of(const struct operator_call *call)
{
    const struct operator_argument *most = NULL;

    for (unsigned i = 0; i < call->count; i++)
        if (call->arguments[i].dimensions &&
            (!most || call->arguments[i].elements > most->elements))
            most = &call->arguments[i];
    return most;
}

/* Widens SIZES, of D dimensions, by A where both go together. */
static void broadcast_sizes(uint64_t *sizes, unsigned d,
                            const struct operator_argument *a)
{
    uint64_t made[OPERATOR_DIMENSIONS];

    if (a->dimensions > d)
        return;
    memcpy(made, sizes, sizeof made);
    for (unsigned i = 0; i < a->dimensions; i++) {
        uint64_t *to = &made[d - a->dimensions + i];
        if (*to == 1)
            *to = a->sizes[i];
        else if (a->sizes[i] != 1 && a->sizes[i] != *to)
            return;
    }
    memcpy(sizes, made, sizeof made);
}

double operator_elements(const struct operator_call *call)
{
    const struct operator_argument *most = largest_of(call);
    uint64_t sizes[OPERATOR_DIMENSIONS];
    double elements = 1;
    unsigned d = 0;

    if (!most)
        return 0;
    for (unsigned i = 0; i < call->count; i++)
        d = call->arguments[i].dimensions > d ? call->arguments[i].dimensions
                                              : d;
    for (unsigned i = 0; i < OPERATOR_DIMENSIONS; i++)
        sizes[i] = 1;
    memcpy(sizes + (d - most->dimensions), most->sizes,
           most->dimensions * sizeof *sizes);
    for (unsigned i = 0; i < call->count; i++)
        broadcast_sizes(sizes, d, &call->arguments[i]);
    for (unsigned i = 0; i < d; i++)
        elements *= (double)sizes[i];
    return elements;
}

/* --- rows and columns ----------------------------------------------------- */

static uint64_t last_of(const struct operator_argument *a)
{
    return a->dimensions ? a->sizes[a->dimensions - 1] : 1;
}

/* Where an operator says over which columns it goes: an argument whose elements
 * they are (a layer norm's weights), or that names their dimension. */
static const struct over {
    const char *name;
    int8_t weights; /* -1: none */
    int8_t dimension;
    bool channels; /* or: they are the channels */
} overs[] = {
    {"aten::native_layer_norm_backward", 5, -1, false},
    {"aten::native_layer_norm", 2, -1, false},
    {"aten::_fused_rms_norm_backward", 4, -1, false},
    {"aten::_fused_rms_norm", 2, -1, false},
    {"aten::native_batch_norm", -1, -1, true},
    {"aten::native_batch_norm_backward", -1, -1, true},
    {"aten::batch_norm_backward_elemt", -1, -1, true},
    {"aten::batch_norm_backward_reduce", -1, -1, true},
    {"aten::native_group_norm", -1, -1, true},
    {"aten::native_group_norm_backward", -1, -1, true},
    {"aten::_log_softmax_backward_data", -1, 2, false},
    {"aten::_softmax_backward_data", -1, 2, false},
    {"aten::_log_softmax", -1, 1, false},
    {"aten::_softmax", -1, 1, false},
    {"aten::sort", -1, 1, false},
};

static uint64_t columns_by(const struct operator_call *call,
                           const struct over *o,
                           const struct operator_argument *most)
{
    unsigned w = (unsigned)o->weights, n = (unsigned)o->dimension;

    if (o->channels)
        return most->dimensions > 1 ? most->sizes[1] : 0;
    if (o->weights >= 0 && w < call->count &&
        call->arguments[w].elements > 0)
        return (uint64_t)call->arguments[w].elements;
    if (o->dimension < 0 || n >= call->count ||
        !call->arguments[n].number_count)
        return 0;
    int64_t at = call->arguments[n].numbers[0];
    at += at < 0 ? most->dimensions : 0;
    return at >= 0 && at < most->dimensions ? most->sizes[at] : 0;
}

static uint64_t columns_of(const struct operator_call *call,
                           const struct operator_argument *most)
{
    for (size_t i = 0; i < sizeof overs / sizeof *overs; i++) {
        uint64_t columns = strcmp(overs[i].name, call->name)
                               ? 0
                               : columns_by(call, &overs[i], most);
        if (columns)
            return columns;
    }
    uint64_t last = last_of(most);
    return last ? last : 1;
}

/* Indices that an operator looks up; 0: it has none. */
static double indices_of(const struct operator_call *call)
{
    double most = 0;

    for (unsigned i = 0; i < call->count; i++) {
        const struct operator_argument *a = &call->arguments[i];
        if (a->type == WORK_INTEGER && a->element_bytes >= 4 &&
            a->elements > most && a->dimensions)
            most = a->elements;
    }
    return most;
}

/* A row of the result for each index; a value of a gather or a scatter. */
static bool index_extents(const struct operator_call *call,
                          const struct operator_argument *most,
                          struct operator_extents *e)
{
    double indices = indices_of(call);
    bool single = text_begins(call->name, "aten::gather") ||
                  text_begins(call->name, "aten::scatter");

    if (text_begins(call->name, "torchvision::nms") ||
        text_begins(call->name, "aten::nll_loss")) {
        *e = (struct operator_extents){most->sizes[0], 1};
        return true;
    }
    if (indices <= 0)
        return false;
    *e = (struct operator_extents){(uint64_t)indices,
                                   single ? 1 : last_of(most)};
    return true;
}

/* Elements of the result of torchvision's RoI align: a box has a grid of every
 * channel. */
static bool align_extents(const struct operator_call *call,
                          struct operator_extents *e)
{
    const struct operator_argument *in = &call->arguments[0];
    const struct operator_argument *boxes = in + 1;

    *e = (struct operator_extents){(uint64_t)in->elements, 1};
    if (text_begins(call->name, "torchvision::_roi_align_backward"))
        return e->rows > 0;
    if (call->count < 5 || in->dimensions != 4 || boxes->dimensions != 2 ||
        !call->arguments[3].number_count || !call->arguments[4].number_count)
        return false;
    e->rows = boxes->sizes[0] * in->sizes[1] *
              (uint64_t)call->arguments[3].numbers[0] *
              (uint64_t)call->arguments[4].numbers[0];
    return e->rows > 0;
}

/* Sorts and scans inside of another operator are of its indices. */
static bool sort_extents(const struct operator_call *call,
                         const struct operator_argument *most,
                         struct operator_extents *e)
{
    static const char *const own[] = {"aten::sort",   "aten::topk",
                                      "aten::cum",    "aten::unique",
                                      "aten::_unique", "aten::argsort",
                                      "aten::nonzero", "aten::masked_select"};
    double indices = indices_of(call);
    uint64_t columns = columns_of(call, most);

    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (text_begins(call->name, own[i]))
            indices = 0;
    *e = (struct operator_extents){(uint64_t)most->elements / columns,
                                   columns};
    if (indices > 0)
        *e = (struct operator_extents){1, (uint64_t)indices};
    return true;
}

static bool plain_extents(const struct operator_call *call,
                          const struct operator_argument *most,
                          const struct kernel_row *row,
                          struct operator_extents *e)
{
    uint64_t columns = columns_of(call, most);

    *e = (struct operator_extents){(uint64_t)most->elements / columns,
                                   columns};
    if (row->rate == WORK_RATE_SMALL_NORM && most->dimensions > 1)
        *e = (struct operator_extents){most->sizes[0], most->sizes[1]};
    return true;
}

bool operator_extents(const struct operator_call *call,
                      const struct kernel_row *row,
                      struct operator_extents *e)
{
    const struct operator_argument *most = largest_of(call);
    bool known;

    if (text_begins(call->name, "torchvision::") &&
        strstr(call->name, "roi_align"))
        return align_extents(call, e);
    if (!most)
        return false;
    known = row->family == WORK_INDEX  ? index_extents(call, most, e)
            : row->family == WORK_SORT ? sort_extents(call, most, e)
                                       : plain_extents(call, most, row, e);
    return known && e->rows && e->columns;
}

/* --- planes --------------------------------------------------------------- */

/* Where an operator has its input, its output (or the output's sizes), its
 * filter, stride, pad and dilation. */
static const struct planes {
    const char *name;
    uint8_t in, out, sizes, filter, stride, pad, dilation;
} planes[] = {
    {"aten::max_pool2d_with_indices", 0, NONE, NONE, 1, 2, 3, 4},
    {"aten::max_pool2d_with_indices_backward", 1, 0, NONE, 2, 3, 4, 5},
    {"aten::avg_pool2d", 0, NONE, NONE, 1, 2, 3, NONE},
    {"aten::avg_pool2d_backward", 1, 0, NONE, 2, 3, 4, NONE},
    {"aten::upsample_nearest2d", 0, NONE, 1, NONE, NONE, NONE, NONE},
    {"aten::upsample_bilinear2d", 0, NONE, 1, NONE, NONE, NONE, NONE},
    {"aten::upsample_nearest2d_backward", NONE, 0, 2, NONE, NONE, NONE, NONE},
    {"aten::upsample_bilinear2d_backward", NONE, 0, 2, NONE, NONE, NONE, NONE},
};

struct plane {
    uint64_t n, c, h, w, out_h, out_w;
};

/* As operator_number(), of extents: 0 is none. */
static uint64_t extent_at(const struct operator_call *call, uint8_t at,
                          unsigned i, uint64_t other)
{
    uint64_t number = operator_number(call, at, i, other);

    return number ? number : other;
}

static uint64_t pooled_size(const struct operator_call *call,
                            const struct planes *p, uint64_t in, unsigned i)
{
    uint64_t filter = extent_at(call, p->filter, i, 1);
    uint64_t stride = extent_at(call, p->stride, i, filter);
    uint64_t dilation = extent_at(call, p->dilation, i, 1);
    uint64_t all = in + 2 * extent_at(call, p->pad, i, 0);
    uint64_t reach = dilation * (filter - 1) + 1;

    return all < reach ? 1 : (all - reach) / stride + 1;
}

static bool plane_read(const struct operator_call *call,
                       const struct planes *p, struct plane *to)
{
    const struct operator_argument *in =
        &call->arguments[p->in == NONE ? p->out : p->in];
    unsigned d = in->dimensions;

    if (d < 3 || d > 4)
        return false;
    *to = (struct plane){.n = d == 4 ? in->sizes[0] : 1,
                         .c = in->sizes[d - 3],
                         .h = in->sizes[d - 2],
                         .w = in->sizes[d - 1]};
    if (p->in == NONE) { /* of the output: the input's sizes are a list */
        to->out_h = to->h;
        to->out_w = to->w;
        to->h = extent_at(call, p->sizes, 2, 0);
        to->w = extent_at(call, p->sizes, 3, 0);
    } else if (p->out != NONE && call->arguments[p->out].dimensions == d) {
        to->out_h = call->arguments[p->out].sizes[d - 2];
        to->out_w = call->arguments[p->out].sizes[d - 1];
    } else if (p->sizes != NONE) {
        to->out_h = extent_at(call, p->sizes, 0, 0);
        to->out_w = extent_at(call, p->sizes, 1, 0);
    } else {
        to->out_h = pooled_size(call, p, to->h, 0);
        to->out_w = pooled_size(call, p, to->w, 1);
    }
    return to->h && to->w && to->out_h && to->out_w;
}

/* The numbers of a kernel that begins with planes, or elements of the result;
 * with batch and channels apart. */
static void words_put(uint64_t *words, const uint64_t numbers[6])
{
    memcpy(words, numbers, 6 * sizeof *words);
}

bool operator_pool_words(const struct operator_call *call,
                         const struct kernel_row *row,
                         uint64_t words[TRACE_LAUNCH_WORDS])
{
    const struct planes *p = OPERATOR_ROW(planes, call->name);
    struct plane at;

    if (!p || !plane_read(call, p, &at))
        return false;
    uint64_t out = at.n * at.c * at.out_h * at.out_w;
    if (row->describe == work_max_pool || row->describe == work_average_pool)
        words_put(words, (const uint64_t[]){out, at.c, at.h, at.w, at.out_h,
                                            at.out_w});
    else if (row->describe == work_upsample)
        words_put(words, (const uint64_t[]){at.n * at.c, at.h, at.w, at.out_h,
                                            at.out_w, 0});
    else if (row->describe == work_upsample_nhwc)
        words_put(words, (const uint64_t[]){at.c, at.h, at.w, at.out_h,
                                            at.out_w, out});
    else if (row->describe == work_max_pool_nhwc ||
             row->describe == work_max_pool_backward ||
             row->describe == work_upsample_backward)
        words_put(words, (const uint64_t[]){at.n, at.c, at.h, at.w, at.out_h,
                                            at.out_w});
    else
        return false;
    return true;
}
