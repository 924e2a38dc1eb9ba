/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost.h"
#include "runtime/cost/cost_image.h"
#include "runtime/cost/cost_rates.h"
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

/* How much shorter contiguous kernels of Hopper are, whose inputs the kernel
 * before has left in the L2 cache, than the times that its fit is of: those
 * have a clock of 1 us, and none is below 2. Six jobs of an H200 have 1.0 to
 * 1.2 us below 0.1 MB, and 0.6 to 1.5 less than the fit up to 40 MB. */
#define STEP_NS  800.0
#define LEAST_NS 1900.0 /* a finer clock's fit begins below it */
#define START_NS 2450.0 /* of the fit: where bytes begin to count */

/* S without the clock's step, up to its last segment. */
static void segments_refine(struct cost_segments *s)
{
    double start = log(START_NS), y1 = log(exp(s->y1) - STEP_NS);

    if (s->y1 > start)
        s->b1 *= (y1 - log(START_NS - STEP_NS)) / (s->y1 - start);
    s->least = log(exp(s->least) - STEP_NS);
    s->y1 = y1;
}

static int segments_price(const void *state, const struct cost_gpu *gpu,
                          const struct work *work, double *ns)
{
    struct cost_segments s = *(const struct cost_segments *)state;

    if (work->family == WORK_ELEMENTWISE && gpu->capability == 90 &&
        exp(s.least) > LEAST_NS)
        segments_refine(&s);
    *ns = cost_segments_ns(&s, work->read_bytes + work->written_bytes);
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
    b.ns *= narrow_loads(gpu, work);
    *answer = (struct cost_answer){
        .ns = whole_ns(b.ns),
        .low_ns = whole_ns(b.ns * b.low),
        .high_ns = whole_ns(b.ns * b.high),
        .basis = m->basis,
        .flags = m->flags,
    };
    return 0;
}

static void answer_time(const struct cost_time *t, struct cost_answer *answer)
{
    *answer = (struct cost_answer){
        .ns = whole_ns(t->ns),
        .low_ns = whole_ns(t->ns * t->low),
        .high_ns = whole_ns(t->ns * t->high),
        .basis = COST_BORROWED,
    };
}

/* By what bounds such kernels, which another GPU has shown. */
static int price_rate(const struct cost_gpu *gpu, const struct work *work,
                      struct cost_answer *answer)
{
    struct cost_time time;

    if (cost_rate_time(gpu, work, &time))
        return -1;
    answer_time(&time, answer);
    return 0;
}

/* Whether IMAGE has a model of WORK from its own GPU's times. */
static bool has_own(const struct cost_image *image, const struct work *work)
{
    const struct cost_model *m = image ? cost_image_model(image, work) : NULL;

    return m && (m->basis == COST_FITTED || m->basis == COST_ESTIMATED);
}

/* Whether IMAGE's own GPU has a model of WORK whose band is no wider than that
 * of TIME, a rule's: 80% of their errors lie in them. */
static bool has_surer(const struct cost_image *image, const struct work *work,
                      const struct cost_time *time)
{
    if (!has_own(image, work))
        return false;
    const struct cost_model *m = cost_image_model(image, work);
    return m->high / m->low <= time->high / time->low;
}

/* Of depthwise convolutions in 16 bits and of a few channels no fit has times.
 */
static bool is_unmeasured(const struct work *work)
{
    return work_variant(work) || work->convolution.c < COST_FEW_CHANNELS;
}

static int price_convolution(const struct cost_image *image,
                             const struct cost_gpu *gpu,
                             const struct work *work,
                             struct cost_answer *answer)
{
    struct cost_time time;

    if (cost_convolution_time(gpu, work, &time) ||
        (!is_unmeasured(work) && has_surer(image, work, &time)))
        return -1;
    answer_time(&time, answer);
    return 0;
}

/* Whether cuDNN's attention is priced by its tiles, at *TIME: unless times of
 * IMAGE's own GPU have a model that errs less. */
static bool is_by_tiles(const struct cost_image *image,
                        const struct cost_gpu *gpu, const struct work *work,
                        struct cost_time *time)
{
    return !cost_attention_time(gpu, work, time) &&
           !has_surer(image, work, time);
}

static int price_attention(const struct cost_image *image,
                           const struct cost_gpu *gpu, const struct work *work,
                           struct cost_answer *answer)
{
    struct cost_time time;

    if (!is_by_tiles(image, gpu, work, &time))
        return -1;
    answer_time(&time, answer);
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

/* A model's ANSWER with what it does not know of WORK: the layout of a product,
 * the arithmetic of an element, and the numbers that attention draws. */
static void answer_correct(const struct cost_image *image,
                           const struct cost_gpu *gpu, const struct work *work,
                           struct cost_answer *answer)
{
    struct cost_time tiles;
    double ns = fmax((double)answer->ns, cost_layout_ns(gpu, work));

    ns = fmax(ns, cost_arithmetic_ns(gpu, work));
    if (!is_by_tiles(image, gpu, work, &tiles))
        ns += cost_dropout_ns(gpu, work);
    double factor = ns / fmax((double)answer->ns, 1);

    if (!(factor > 1))
        return;
    answer->ns = whole_ns(ns);
    answer->low_ns = whole_ns((double)answer->low_ns * factor);
    answer->high_ns = whole_ns((double)answer->high_ns * factor);
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

/* The price of what is known best: the kernel itself, its shape, its family. */
static int price_best(const struct cost_image *image,
                      const struct cost_gpu *gpu, const struct work *work,
                      struct cost_answer *answer)
{
    if (!price_rate(gpu, work, answer) ||
        !price_convolution(image, gpu, work, answer) ||
        !price_attention(image, gpu, work, answer))
        return 0;
    return !image || (price_model(image, gpu, work, answer) &&
                      price_gradient(image, gpu, work, answer))
               ? -1
               : 0;
}

void cost_price(const struct cost_image *image, const struct cost_gpu *gpu,
                const struct work *work, struct cost_answer *answer)
{
    uint64_t bound = whole_ns(cost_bound_ns(gpu, work));

    if (work->family == WORK_NOTHING || work->is_part) {
        *answer = (struct cost_answer){.basis = COST_MEASURED};
        return;
    }
    bool known = is_described(work);
    if (work->is_recurrent) {
        cost_recurrent_price(image, gpu, work, answer);
    } else if (!image || !known || price_measured(image, work, answer)) {
        if (!known || price_best(image, gpu, work, answer))
            price_roofline(gpu, work, answer);
        answer_correct(image, gpu, work, answer);
        if (image && known)
            answer_scale(image, work, answer);
    }
    answer->ns = at_least(answer->ns, bound);
    answer->low_ns = at_least(answer->low_ns, bound);
    answer->high_ns = at_least(answer->high_ns, answer->ns);
}
