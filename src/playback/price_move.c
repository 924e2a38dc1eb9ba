/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/price_move.h"

#include <math.h>

/* The band of a time that is scaled without its shape: a guess. */
#define FAMILY_BAND 2

/* GPUs of other generations have other kernels and caches: how much further
 * apart than their peaks they may be. */
#define OTHER_KERNELS 1.5

static double ratio_of(double own, double there)
{
    return own > 0 && there > 0 ? own / there : 1;
}

void price_move_init(struct price_move *m, const struct price_options *own,
                     const struct price_options *there)
{
    cost_gpu_set(own->gpu, &m->from);
    cost_gpu_set(there->gpu, &m->to);
    m->own = pricer_create(own);
    m->memory = ratio_of(m->from.memory_gbps, m->to.memory_gbps);
    m->products =
        ratio_of(m->from.tflops[WORK_FP16], m->to.tflops[WORK_FP16]);
}

void price_move_fini(struct price_move *m)
{
    if (m->own)
        pricer_destroy(m->own);
    m->own = NULL;
}

static bool is_product(enum work_family family)
{
    switch (family) {
    case WORK_GEMM:
    case WORK_CONVOLUTION_FORWARD:
    case WORK_CONVOLUTION_DGRAD:
    case WORK_CONVOLUTION_WGRAD:
    case WORK_ATTENTION_FORWARD:
    case WORK_ATTENTION_BACKWARD:
        return true;
    default:
        return false;
    }
}

static bool is_known(const struct cost_answer *a)
{
    return a->ns && a->basis != COST_FALLBACK;
}

/* How far the upper end of A's band is away. */
static double band_of(const struct cost_answer *a)
{
    return fmax((double)a->high_ns / (double)a->ns,
                a->low_ns ? (double)a->ns / (double)a->low_ns : 1);
}

/* RATIO, as far as the GPUs' peaks allow it to PRICE. */
static double ratio_bounded(const struct price_move *m,
                            const struct price *price, double ratio)
{
    const struct cost_gpu *from = &m->from, *to = &m->to;
    double compute = ratio_of(from->tflops[price->type],
                              to->tflops[price->type]);
    double clock = ratio_of(from->clock_mhz, to->clock_mhz);
    double slack = from->capability == to->capability ? 1 : OTHER_KERNELS;
    double least = fmin(fmin(m->memory, compute), fmin(clock, 1));
    double most = fmax(fmax(m->memory, compute), fmax(clock, 1));

    if (price->engine != SIM_COMPUTE || !(to->tflops[price->type] > 0))
        return ratio;
    return fmin(fmax(ratio, least / slack), most * slack);
}

struct cost_answer price_move(struct price_move *m, const struct op *op,
                              const struct trace_names *names,
                              const struct price *there, uint64_t measured_ns)
{
    struct price own;
    double ratio = is_product(there->family) ? m->products : m->memory;
    double band = FAMILY_BAND;

    pricer_price(m->own, op, names, NULL, &own);
    bool known = is_known(&own.answer) && is_known(&there->answer);
    if (known) {
        double priced = (double)there->answer.ns / (double)own.answer.ns;
        ratio = ratio_bounded(m, there, priced);
        band = fmax(band_of(&own.answer), band_of(&there->answer));
        band = fmax(band, fmin(FAMILY_BAND, fmax(priced / ratio,
                                                 ratio / priced)));
        m->call_ratio = ratio;
        m->call_band = band;
    } else if (there->is_part && m->call_ratio > 0) {
        ratio = m->call_ratio;
        band = m->call_band;
    }
    double ns = (double)measured_ns * ratio;
    return (struct cost_answer){
        .ns = (uint64_t)llround(ns),
        .low_ns = (uint64_t)llround(ns / band),
        .high_ns = (uint64_t)llround(ns * band),
        .basis = COST_BORROWED,
    };
}
