/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of cuDNN on data center GPUs from Ampere on, of which that GPU
 * itself has no times: by what its kernels do. Numbers are those of five jobs
 * on one H200 (cuDNN 9.19): bf16 in both layouts, TF32 in NCHW. */
#include "runtime/cost/cost_rates.h"

#include <math.h>

/* cuDNN's kernels want the channels last. In NCHW it transposes what it reads
 * and writes by three kernels, but for filters of 1 x 1, which are products as
 * they are. Of the memory's rate, and what a kernel takes at least. A filter is
 * transposed in few, long columns: elements a cycle of a multiprocessor. */
#define TRANSPOSE_HALF     0.47
#define TRANSPOSE_TF32     0.74
#define TRANSPOSE_FLOOR_NS 1800.0
#define TRANSPOSE_FILTER   0.62

/* Fewer output channels than this are a part of a tile. */
#define TILE 128.0

/* A tile goes over its filter and channels in order. Where there are too few
 * tiles, cuDNN has smaller ones, or divides the channels. */
#define DEPTH_NS 2.2

struct line {
    float floor_ns;
    float half, tf32; /* shares of the peak */
    float memory;
};

static const struct line dense[] = {
    {6000, 0.80F, 0.80F, 0.80F}, /* forward */
    {4000, 0.70F, 0.70F, 0.80F}, /* gradient of the input */
    {6000, 0.60F, 0.35F, 0.70F}, /* of the filter */
};
/* In TF32 a filter of 1 x 1 in NCHW is a product whose operands lie across. */
static const struct line across[] = {
    {5000, 0.80F, 0.36F, 0.80F},
    {4000, 0.70F, 0.28F, 0.75F},
    {6000, 0.60F, 0.22F, 0.70F},
};

/* A few channels are padded to 16 bytes, pixel by pixel, and run kernels that
 * find few of their operands in shared memory. Pixels a cycle of a
 * multiprocessor, by layout. */
#define PADDED_BYTES 16.0
static const double padded_pixels[] = {[WORK_NCHW] = 0.088, [WORK_NHWC] = 0.22};
static const struct line few[] = {
    {8000, 0.106F, 0.11F, 0.5F},
    {8000, 0.106F, 0.11F, 0.5F},
    {8000, 0.170F, 0.155F, 0.5F},
};

/* PyTorch's own depthwise kernel, whose threads find their place by divisions
 * and then load an element and a weight for each tap, 32 loads a cycle. Squares
 * of 1, 3 and 5 are unrolled. From four times of an H100, of 3 x 3, 3 x 1 and
 * 3 x 7 (KernelBench, level 1): cycles of a multiprocessor for an element. */
static const struct {
    double place, tap;
} own_depthwise[] = {{2.72, 0.09}, {1.93, 0.0625}}; /* else; unrolled */

/* cuDNN's depthwise kernels of 16 bits, channels last, as shares of the fp32
 * peak: 7 x 7 at 14 to 56 pixels. */
static const struct line depthwise[] = {
    {2000, 0.160F, 0.160F, 0.5F},
    {2000, 0.085F, 0.085F, 0.5F},
    {4000, 0.190F, 0.190F, 0.5F},
};

/* One dimension in groups, 16 bits: cuDNN has kernels for each group, with a
 * block for some 250 pixels, which leave most multiprocessors idle, on eight
 * streams of its own. A block goes over its filter and channels in order.
 * wav2vec2's positions (768 channels in 16 groups, 128 taps) take 12.2 ms
 * forward, of 30.9 ms of kernels, and 0.9 of 3.9 for the input's gradient; the
 * filter's is one kernel of all groups, 0.26 ms. */
#define GROUP_PIXELS 250.0
static const struct {
    double alone_ns, beside_ns; /* a group's; for each of all groups */
} group_depth[] = {{314, 124}, {39, 9}}; /* forward, input */
#define GROUP_FILTER 0.077 /* of the tensor cores' peak */

#define DENSE_BAND     1.3
#define GROUP_BAND     1.6
#define FEW_BAND       1.4
#define DEPTHWISE_BAND 1.4

/* Bytes of WORK's input, output and filter. */
struct tensors {
    double in, out, filter;
};

static struct tensors tensors_of(const struct work *work)
{
    const struct work_convolution *c = &work->convolution;
    double bytes = work->element_bytes, n = (double)c->n;
    double depth = c->d ? (double)c->d : 1;

    return (struct tensors){
        .in = bytes * n * (double)c->c * depth * (double)(c->h * c->w),
        .out = bytes * n * (double)c->k * depth * (double)(c->out_h * c->out_w),
        .filter = bytes * (double)(c->c * c->k * c->r * c->s),
    };
}

static unsigned pass_of(const struct work *work)
{
    return (unsigned)(work->family - WORK_CONVOLUTION_FORWARD);
}

static bool is_half(const struct work *work)
{
    return work->type == WORK_FP16 || work->type == WORK_BF16;
}

static double peak_rate(const struct cost_gpu *gpu, enum work_type type)
{
    return 1e3 * fmax(gpu->tflops[type] > 0 ? gpu->tflops[type]
                                            : gpu->tflops[WORK_FP32],
                      1);
}

static double memory_ns(const struct cost_gpu *gpu, double bytes, double share)
{
    return bytes / (share * fmax(gpu->memory_gbps, 1));
}

static double clocks_of(const struct cost_gpu *gpu)
{
    return fmax(1e-3 * gpu->clock_mhz * gpu->sm_count, 1);
}

static double transpose_ns(const struct cost_gpu *gpu, const struct work *work,
                           double bytes)
{
    return memory_ns(gpu, bytes,
                     is_half(work) ? TRANSPOSE_HALF : TRANSPOSE_TF32);
}

static double line_ns(const struct cost_gpu *gpu, const struct work *work,
                      const struct line *line, double flops)
{
    double share = is_half(work) ? line->half : line->tf32;
    double bytes = work->read_bytes + work->written_bytes;

    return fmax(flops / (share * peak_rate(gpu, work->type)),
                memory_ns(gpu, bytes, line->memory));
}

static bool is_product(const struct work_convolution *c)
{
    return c->layout == WORK_NCHW && c->r * c->s == 1 && c->stride_h == 1 &&
           c->stride_w == 1;
}

static double tile_fill(double extent)
{
    return extent / (TILE * ceil(extent / TILE));
}

/* Three kernels; a filter of one tap is the same both ways. */
static double transposes_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_convolution *c = &work->convolution;
    const struct tensors t = tensors_of(work);
    double filter =
        c->r * c->s == 1 ? 0 : t.filter / fmax(work->element_bytes, 1);

    return TRANSPOSE_FLOOR_NS * (filter > 0 ? 3 : 2) +
           transpose_ns(gpu, work, 2 * (t.in + t.out)) +
           filter / (TRANSPOSE_FILTER * clocks_of(gpu));
}

static double dense_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_convolution *c = &work->convolution;
    bool data = work->family == WORK_CONVOLUTION_DGRAD;
    bool filter = work->family == WORK_CONVOLUTION_WGRAD;
    double fill = tile_fill((double)(data ? c->c : c->k));
    double depth =
        filter ? 0 : DEPTH_NS * (double)((data ? c->k : c->c) * c->r * c->s);
    bool product = is_product(c);
    const struct line *line = &(product ? across : dense)[pass_of(work)];
    double ns = fmax(line_ns(gpu, work, line, work->flops / sqrt(fill)), depth);

    if (c->layout == WORK_NCHW && !product)
        ns += transposes_ns(gpu, work);
    return ns + line->floor_ns;
}

/* The first layer of most networks: three channels. */
static double few_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_convolution *c = &work->convolution;
    double padded = PADDED_BYTES / work->element_bytes / (double)c->c;
    double pixels = (double)(c->n * c->h * c->w);
    double cycles = 1e-3 * gpu->clock_mhz * fmax(gpu->sm_count, 1);
    double ns =
        line_ns(gpu, work, &few[pass_of(work)], work->flops * fmax(padded, 1));

    if (cycles > 0)
        ns += pixels / (padded_pixels[c->layout] * cycles);
    if (c->layout == WORK_NCHW)
        ns += transpose_ns(gpu, work, 2 * tensors_of(work).out);
    return ns + few[pass_of(work)].floor_ns;
}

static double depthwise_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct line *line = &depthwise[pass_of(work)];
    double bytes = work->read_bytes + work->written_bytes;

    return line->floor_ns +
           fmax(work->flops / (line->half * peak_rate(gpu, WORK_FP32)),
                memory_ns(gpu, bytes, line->memory));
}

/* PyTorch's own kernel: cuDNN's have no fp32 without TF32. */
static bool is_own_depthwise(const struct work *work)
{
    const struct work_convolution *c = &work->convolution;

    return work->family == WORK_CONVOLUTION_FORWARD && work_variant(work) &&
           work->type == WORK_FP32 && c->layout == WORK_NCHW;
}

static double own_depthwise_ns(const struct cost_gpu *gpu,
                               const struct work *work)
{
    const struct work_convolution *c = &work->convolution;
    bool unrolled = c->r == c->s && (c->r == 1 || c->r == 3 || c->r == 5);
    double bytes = work->read_bytes + work->written_bytes;
    double cycles = own_depthwise[unrolled].place +
                    own_depthwise[unrolled].tap * (double)(c->r * c->s);

    return depthwise[0].floor_ns +
           fmax((double)work->elements * cycles / clocks_of(gpu),
                memory_ns(gpu, bytes, dense[0].memory));
}

static double grouped_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_convolution *c = &work->convolution;
    bool data = work->family == WORK_CONVOLUTION_DGRAD;
    double groups = (double)c->groups;
    double depth = (double)((data ? c->k : c->c) * c->r * c->s) / groups;
    double pixels = (double)(c->n * (data ? c->w : c->out_w));
    double waves = ceil(pixels / (GROUP_PIXELS * fmax(gpu->sm_count, 1)));

    if (work->family == WORK_CONVOLUTION_WGRAD)
        return dense[pass_of(work)].floor_ns +
               work->flops / (GROUP_FILTER * peak_rate(gpu, work->type));
    return waves * depth *
           fmax(groups * group_depth[pass_of(work)].beside_ns,
                group_depth[pass_of(work)].alone_ns);
}

static bool is_row(const struct work_convolution *c)
{
    return c->h == 1 && c->r == 1 && c->d <= 1;
}

static void time_set(struct cost_time *time, double ns, double band)
{
    *time = (struct cost_time){ns, 1 / band, band};
}

static bool is_known(const struct cost_gpu *gpu, const struct work *work)
{
    return cost_is_data_center(gpu) &&
           work->family >= WORK_CONVOLUTION_FORWARD &&
           work->family <= WORK_CONVOLUTION_WGRAD &&
           (is_half(work) || work->type == WORK_TF32 ||
            is_own_depthwise(work)) &&
           work->convolution.c;
}

int cost_convolution_time(const struct cost_gpu *gpu, const struct work *work,
                          struct cost_time *time)
{
    const struct work_convolution *c = &work->convolution;

    if (!is_known(gpu, work))
        return -1;
    if (is_own_depthwise(work)) {
        time_set(time, own_depthwise_ns(gpu, work), DEPTHWISE_BAND);
    } else if (work_variant(work)) {
        if (c->layout != WORK_NHWC || !is_half(work))
            return -1;
        time_set(time, depthwise_ns(gpu, work), DEPTHWISE_BAND);
    } else if (c->groups > 1) {
        if (!is_row(c) || !is_half(work))
            return -1;
        time_set(time, grouped_ns(gpu, work), GROUP_BAND);
    } else if (c->c < COST_FEW_CHANNELS && !is_product(c)) {
        time_set(time, few_ns(gpu, work), FEW_BAND);
    } else {
        time_set(time, dense_ns(gpu, work), DENSE_BAND);
    }
    return 0;
}
