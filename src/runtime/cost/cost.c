/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost.h"
#include "runtime/cost/cost_image.h"
#include "runtime/cost/cost_recurrent.h"

#include <math.h>

/* Half of a roofline's errors are within about this factor. */
#define ROOFLINE_BAND 1.5
#define FALLBACK_BAND 3.0

/* Two runs of one shape on one GPU differ by a few per cent: 3 to 8% between
 * framework versions. */
#define MEASURED_BAND 1.08

/* The longest time that is believed: a day. */
#define MAX_NS 86400e9

static uint64_t whole_ns(double ns)
{
    if (!(ns > 0))
        return 0;
    return (uint64_t)(ns < MAX_NS ? ns + 0.5 : MAX_NS);
}

static void price_roofline(const struct cost_gpu *gpu, const struct work *work,
                           struct cost_answer *answer)
{
    double ns = cost_roofline_ns(cost_roofline_default(work), gpu, work);
    bool known = work->source == WORK_EXACT || work->source == WORK_RULE;
    double band = known ? ROOFLINE_BAND : FALLBACK_BAND;

    *answer = (struct cost_answer){
        .ns = whole_ns(ns),
        .low_ns = whole_ns(ns / band),
        .high_ns = whole_ns(ns * band),
        .basis = known ? COST_ROOFLINE : COST_FALLBACK,
    };
}

static int line_price(const void *state, const struct cost_gpu *gpu,
                      const struct work *work, double *ns)
{
    *ns = cost_roofline_ns(state, gpu, work);
    return 0;
}

static int segments_price(const void *state, const struct cost_gpu *gpu,
                          const struct work *work, double *ns)
{
    (void)gpu;
    *ns = cost_segments_ns(state, work->read_bytes + work->written_bytes);
    return 0;
}

static int trees_price(const void *state, const struct cost_gpu *gpu,
                       const struct work *work, double *ns)
{
    *ns = cost_trees_ns(state, gpu, work, 0);
    return *ns > 0 ? 0 : -1;
}

static const struct cost_ops models[COST_KINDS] = {
    [COST_LINE] = {"roofline", line_price},
    [COST_SEGMENTS] = {"segments", segments_price},
    [COST_TREES] = {"trees", trees_price},
};

const struct cost_ops *cost_kind_ops(enum cost_kind kind)
{
    return (unsigned)kind < COST_KINDS ? &models[kind] : NULL;
}

static bool is_misaligned(uint64_t leading)
{
    return leading % 8 != 0;
}

/* The tile of a kernel for misaligned products of M x N. */
static uint64_t crooked_tile(const struct work_gemm *g)
{
    uint64_t most = g->m > g->n ? g->m : g->n;

    return most > 64 ? 128 : most > 32 ? 64 : 32;
}

static double whole_tiles(uint64_t extent, uint64_t tile)
{
    return (double)((extent + tile - 1) / tile * tile);
}

/* 16-bit products whose rows do not start at 16 bytes run kernels that load and
 * store 2 to 8 bytes at a time. What those reach, by clock and multiprocessor:
 * the median of 621 operations of whole tiles (M = 9477, N = 1152, K = 588 at
 * 1.2 GHz, m87-labs/kestrel pull request 143), 557 and 515 (96 x 3137 x 64 x
 * 3137 and 16 x 5185 x 64 x 5185 in AMD-AGI/TraceLens's traces of an H100, at
 * the boost clock); and the geometric mean of 7.0 and 4.7 bytes of a misaligned
 * result that are left in 96 x 3137 x 3137 x 64 and 16 x 5185 x 5185 x 64. */
#define CROOKED_FLOPS 557.0
#define CROOKED_BYTES 5.7

/* The least that a product takes for not being aligned; 0: it is. */
static double crooked_ns(const struct cost_gpu *gpu, const struct work *work)
{
    const struct work_gemm *g = &work->gemm;
    bool half = work->type == WORK_FP16 || work->type == WORK_BF16;

    if (work->family != WORK_GEMM || !half)
        return 0;
    uint64_t lda = g->lda ? g->lda : g->transpose_a ? g->m : g->k;
    uint64_t ldb = g->ldb ? g->ldb : g->transpose_b ? g->k : g->n;
    uint64_t ldc = g->ldc ? g->ldc : g->n, tile = crooked_tile(g);
    double clocks = 1e-3 * gpu->clock_mhz * gpu->sm_count; /* a nanosecond */
    if (!is_misaligned(lda | ldb | ldc) || !(clocks > 0))
        return 0;
    double flops = 2 * whole_tiles(g->m, tile) * whole_tiles(g->n, tile) *
                   (double)g->k * (double)g->batch;
    double stored = is_misaligned(ldc) ? work->written_bytes : 0;
    return (flops / CROOKED_FLOPS + stored / CROOKED_BYTES) / clocks;
}

/* How much longer contiguous kernels take whose threads load less than 16 bytes
 * at a time (PyTorch before 2.7 loads four elements, also of 16 bits): gelu and
 * sin of 2^26 to 2^29 elements, before and after pytorch/pytorch pull request
 * 141959, 1.13 and 1.08 on an H100, 1.045 on an A100. */
static double narrow_loads(const struct cost_gpu *gpu, const struct work *work)
{
    if (work->family != WORK_ELEMENTWISE || !work->load_bytes ||
        work->load_bytes >= 16)
        return 1;
    return gpu->capability >= 90 ? 1.10 : 1.045;
}

/* A price and its band, as factors of it. */
struct blend {
    double ns, low, high;
};

static int model_price(const struct cost_image *image,
                       const struct cost_model *m, const struct cost_gpu *gpu,
                       const struct work *work, double *ns)
{
    return models[m->kind].price((const char *)image + m->at, gpu, work, ns);
}

/* The geometric mean of the models that are blended with M, and of their bands.
 */
static int blend_price(const struct cost_image *image,
                       const struct cost_model *m, const struct cost_gpu *gpu,
                       const struct work *work, struct blend *blend)
{
    double weights = 0, price = 0, low = 0, high = 0, ns;

    for (; m; m = cost_image_blend(image, m, work)) {
        if (model_price(image, m, gpu, work, &ns))
            return -1;
        weights += m->weight;
        price += m->weight * log(ns);
        low += m->weight * log(m->low);
        high += m->weight * log(m->high);
    }
    *blend = (struct blend){exp(price / weights), exp(low / weights),
                            exp(high / weights)};
    return 0;
}

static int price_model(const struct cost_image *image,
                       const struct cost_gpu *gpu, const struct work *work,
                       struct cost_answer *answer)
{
    const struct cost_model *m = cost_image_model(image, work);
    struct blend b;

    if (!m)
        return -1;
    b = (struct blend){0, m->low, m->high};
    if (m->weight > 0 ? blend_price(image, m, gpu, work, &b)
                      : model_price(image, m, gpu, work, &b.ns))
        return -1;
    b.ns = fmax(b.ns * narrow_loads(gpu, work), crooked_ns(gpu, work));
    *answer = (struct cost_answer){
        .ns = whole_ns(b.ns),
        .low_ns = whole_ns(b.ns * b.low),
        .high_ns = whole_ns(b.ns * b.high),
        .basis = m->basis,
        .flags = m->flags,
    };
    return 0;
}

static void answer_measured(double ns, struct cost_answer *answer)
{
    *answer = (struct cost_answer){
        .ns = whole_ns(ns),
        .low_ns = whole_ns(ns / MEASURED_BAND),
        .high_ns = whole_ns(ns * MEASURED_BAND),
        .basis = COST_MEASURED,
    };
}

static int price_measured(const struct cost_image *image,
                          const struct work *work, struct cost_answer *answer)
{
    double ns;

    if (cost_image_find(image, work, &ns))
        return -1;
    answer_measured(ns, answer);
    return 0;
}

static bool is_gradient(enum work_family family)
{
    return family == WORK_CONVOLUTION_DGRAD || family == WORK_CONVOLUTION_WGRAD;
}

/* What a convolution's gradient takes of its forward's time: the medians and
 * the 10th and 90th percentiles of baidu-research/DeepBench's pairs on a V100
 * with cuDNN 7.6, 71 of inputs and 81 of filters in each type (data/benchmarks/
 * ops/v100-sxm2-16gb/conv2d.deepbench.csv). Nobody published depthwise ones:
 * the input's counts as forward, the filter's as half as fast. */
static struct blend gradient_ratio(const struct work *work)
{
    static const struct blend half[] = {{1.22, 0.78, 2.19}, {1.36, 0.53, 1.40}};
    static const struct blend whole[] = {{1.03, 0.77, 2.11},
                                         {1.36, 0.55, 1.69}};
    static const struct blend depthwise[] = {
        {1, 1 / ROOFLINE_BAND, ROOFLINE_BAND},
        {2, 1 / ROOFLINE_BAND, ROOFLINE_BAND}};
    bool filter = work->family == WORK_CONVOLUTION_WGRAD;

    if (work_variant(work))
        return depthwise[filter];
    return (work->element_bytes == 2 ? half : whole)[filter];
}

double cost_bands_join(double one, double other)
{
    return exp(hypot(log(one), log(other)));
}

/* The band BOUND of NS, joined with FACTOR. */
static double join_bands(uint64_t bound, uint64_t ns, double factor)
{
    return cost_bands_join(fmax((double)bound, 1) / fmax((double)ns, 1),
                           factor);
}

static int price_known(const struct cost_image *image,
                       const struct cost_gpu *gpu, const struct work *work,
                       struct cost_answer *answer)
{
    return price_measured(image, work, answer) &&
                   price_model(image, gpu, work, answer)
               ? -1
               : 0;
}

/* The gradient of a convolution of which no GPU has times like it: what the
 * forward of that shape takes, times what gradients usually take of it. */
static int price_gradient(const struct cost_image *image,
                          const struct cost_gpu *gpu, const struct work *work,
                          struct cost_answer *answer)
{
    struct work forward = *work;
    struct cost_answer of;

    forward.family = WORK_CONVOLUTION_FORWARD;
    if (!is_gradient(work->family) || price_known(image, gpu, &forward, &of))
        return -1;
    struct blend ratio = gradient_ratio(work);
    double ns = (double)of.ns * ratio.ns;
    *answer = (struct cost_answer){
        .ns = whole_ns(ns),
        .low_ns = whole_ns(ns / join_bands(of.low_ns, of.ns, ratio.low)),
        .high_ns = whole_ns(ns * join_bands(of.high_ns, of.ns, ratio.high)),
        .basis = of.basis < COST_BORROWED ? COST_BORROWED : of.basis,
        .flags = of.flags,
    };
    return 0;
}

int cost_price_kernel(const struct cost_image *image, uint64_t key,
                      struct cost_answer *answer)
{
    double ns;

    if (!image || !image->kernel_count ||
        cost_image_find_key(image, key, &ns))
        return -1;
    answer_measured(ns, answer);
    return 0;
}

/* Corrects a model's ANSWER by what was measured of WORK's family. */
static void answer_scale(const struct cost_image *image,
                         const struct work *work, struct cost_answer *answer)
{
    const struct cost_scale *s = &image->scales[work->family];
    double ns = (double)answer->ns * s->factor;

    if (!(s->factor > 0))
        return;
    answer->ns = whole_ns(ns);
    answer->low_ns = whole_ns(ns * s->low);
    answer->high_ns = whole_ns(ns * s->high);
    answer->basis = COST_FITTED;
}

static uint64_t at_least(uint64_t ns, uint64_t bound)
{
    return ns < bound ? bound : ns;
}

static bool is_described(const struct work *work)
{
    return work->source == WORK_EXACT || work->source == WORK_RULE;
}

void cost_correct_kernel(const struct cost_image *image, uint64_t key,
                         const struct work *work, struct cost_answer *answer)
{
    double factor;

    if (!image || !image->kernel_count || is_described(work) ||
        cost_image_find_key(image, key, &factor))
        return;
    answer->ns = whole_ns((double)answer->ns * factor);
    answer->low_ns = whole_ns((double)answer->low_ns * factor);
    answer->high_ns = whole_ns((double)answer->high_ns * factor);
}

void cost_price(const struct cost_image *image, const struct cost_gpu *gpu,
                const struct work *work, struct cost_answer *answer)
{
    uint64_t bound = whole_ns(cost_bound_ns(gpu, work));

    if (work->family == WORK_NOTHING) {
        *answer = (struct cost_answer){.basis = COST_MEASURED};
        return;
    }
    bool known = is_described(work);
    if (work->is_recurrent) {
        cost_recurrent_price(image, gpu, work, answer);
    } else if (!image || !known || price_measured(image, work, answer)) {
        if (!image || !known || (price_model(image, gpu, work, answer) &&
                                 price_gradient(image, gpu, work, answer)))
            price_roofline(gpu, work, answer);
        if (image && known)
            answer_scale(image, work, answer);
    }
    answer->ns = at_least(answer->ns, bound);
    answer->low_ns = at_least(answer->low_ns, bound);
    answer->high_ns = at_least(answer->high_ns, answer->ns);
}
