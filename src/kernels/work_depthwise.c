/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's own depthwise convolutions (DepthwiseConv2d.cu), which it takes
 * where cuDNN has none or is slow. */
#include "kernels/work_internal.h"

/* Which words of TRACE_RULE_SIZES are the elements of input, output and
 * filter, and the output's channels, the channels of each group, and the
 * input's width. */
struct places {
    uint8_t in, out, filter, channels, multiplier, width;
};

/* conv_depthwise2d_forward_kernel(in, out, filter, bias, ..., total, output
 * channels, multiplier, input width, ...) */
static const struct places forward = {0, 1, 2, 5, 6, 7};
/* conv_depthwise2d_backward_kernel(d out, d in, filter, total, input channels,
 * multiplier, output channels, input width, ...) */
static const struct places data = {1, 0, 2, 6, 5, 7};
/* conv_depthwise2d_grad_weight_kernel(d out, in, d filter, batch, input
 * channels, output channels, multiplier, input width, ...) */
static const struct places filter = {1, 0, 2, 5, 6, 7};

static const struct places *places_of(enum work_family family)
{
    switch (family) {
    case WORK_CONVOLUTION_DGRAD:
        return &data;
    case WORK_CONVOLUTION_WGRAD:
        return &filter;
    default:
        return &forward;
    }
}

static uint64_t square_root(uint64_t number)
{
    uint64_t root = 1;

    while ((root + 1) * (root + 1) <= number && root < 1000)
        root++;
    return root;
}

/* How many times fewer elements a plane of the output has than one of the
 * input is about the stride's square. */
static uint64_t stride_of(double ratio)
{
    uint64_t stride = 1;

    while (stride < 16 && ratio * (double)(stride * stride) < 0.6)
        stride++;
    return stride;
}

/* The numbers of images and of rows are not told apart: one image of all rows.
 * Filters are taken for squares, and both strides for equal. */
static void set_shape(const uint64_t *w, const struct places *p,
                      struct work_convolution *c)
{
    uint64_t k = w[p->channels], size = w[p->filter] / k;
    uint64_t channels = k / w[p->multiplier];
    double ratio =
        (double)w[p->out] / (double)k * (double)channels / (double)w[p->in];

    *c = (struct work_convolution){
        .n = 1,
        .c = channels,
        .k = k,
        .groups = channels,
        .d = 1,
        .t = 1,
        .w = w[p->width],
        .h = w[p->in] / channels / w[p->width],
        .r = square_root(size),
        .stride_w = stride_of(ratio),
        .dilation_h = 1,
        .dilation_w = 1,
        .layout = WORK_NCHW,
    };
    c->out_w = (c->w + c->stride_w - 1) / c->stride_w;
    c->out_h = w[p->out] / k / c->out_w;
    c->s = c->r;
    c->stride_h = c->stride_w;
    c->pad_h = c->pad_w = c->r / 2;
}

bool work_depthwise(const struct work_kernel *kernel,
                    const struct work_launch *launch, struct work *work)
{
    const struct places *p = places_of(work->family);
    const uint64_t *w = launch->words;
    double bytes = kernel->type_bytes[0];
    double written =
        (double)w[work->family == WORK_CONVOLUTION_WGRAD   ? p->filter
                  : work->family == WORK_CONVOLUTION_DGRAD ? p->in
                                                           : p->out];

    if (launch->rule != TRACE_RULE_SIZES || bytes <= 0 || !w[p->in] ||
        !w[p->channels] || !w[p->multiplier] || !w[p->width] ||
        w[p->multiplier] > w[p->channels])
        return false;
    double moved = (double)w[p->in] + (double)w[p->out] + (double)w[p->filter];
    set_shape(w, p, &work->convolution);
    work->element_bytes = kernel->type_bytes[0];
    work->elements = (uint64_t)written;
    work->flops =
        2 * (double)w[p->out] * (double)w[p->filter] / (double)w[p->channels];
    work->written_bytes = bytes * written;
    work->read_bytes = bytes * (moved - written);
    return true;
}
