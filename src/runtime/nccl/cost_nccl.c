/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nccl/cost_nccl.h"
#include "runtime/nccl/cost_nccl_band.h"
#include "runtime/nccl/cost_nccl_share.h"
#include "runtime/nccl/fit_curve.h"
#include "runtime/nccl/fit_formula.h"

#include <math.h>

/* Whose bus bandwidth a collective would share, nearest first; the list ends
 * with itself. */
#define LOOKS_LIKE 4
static const enum fit_coll looks_like[FIT_COLL_COUNT][LOOKS_LIKE] = {
    [FIT_ALL_REDUCE] = {FIT_REDUCE_SCATTER, FIT_ALL_GATHER, FIT_ALL_REDUCE},
    [FIT_ALL_GATHER] = {FIT_REDUCE_SCATTER, FIT_ALL_REDUCE, FIT_ALL_GATHER},
    [FIT_REDUCE_SCATTER] = {FIT_ALL_GATHER, FIT_ALL_REDUCE, FIT_REDUCE_SCATTER},
    [FIT_BROADCAST] = {FIT_REDUCE, FIT_ALL_GATHER, FIT_ALL_REDUCE,
                       FIT_BROADCAST},
    [FIT_REDUCE] = {FIT_BROADCAST, FIT_REDUCE_SCATTER, FIT_ALL_REDUCE,
                    FIT_REDUCE},
    [FIT_ALLTOALL] = {FIT_GATHER, FIT_ALL_GATHER, FIT_ALL_REDUCE, FIT_ALLTOALL},
    [FIT_SENDRECV] = {FIT_BROADCAST, FIT_ALL_GATHER, FIT_ALL_REDUCE,
                      FIT_SENDRECV},
    [FIT_GATHER] = {FIT_SCATTER, FIT_ALLTOALL, FIT_ALL_GATHER, FIT_GATHER},
    [FIT_SCATTER] = {FIT_GATHER, FIT_ALLTOALL, FIT_ALL_GATHER, FIT_SCATTER},
};

static const char *const flag_texts[COST_NCCL_FLAGS] = {
    "smaller than any size measured",
    "larger than any size measured",
    "between the node counts measured",
    "outside the node counts measured",
    "measured with another number of GPUs a node",
    "from another collective's measurements",
    "from the link levels alone",
    "no spread was measured: at the mean (--quantile)",
    "the model asked for does not reach here",
    "slowed down by others on the node's network",
    "measured on faster links only, inside a node or a rack",
    "from the GPU's data sheet and NCCL's latencies",
};

static const char *const flag_names[COST_NCCL_FLAGS] = {
    "below-sizes", "above-sizes", "between-nodes",    "outside-nodes",
    "other-width", "other-collective", "levels",      "no-quantile",
    "other-model", "shared",           "other-links", "data-sheet",
};

static const double quantiles[FIT_QUANTILES] = {0.5, 0.75, 0.95, 0.99};

const char *cost_nccl_flag_name(unsigned flag)
{
    return flag_names[__builtin_ctz(flag)];
}

const char *cost_nccl_flag_text(unsigned flag)
{
    return flag_texts[__builtin_ctz(flag)];
}

/* Curves of one node alone cannot say what a network costs, nor those of
 * several what the links of one do; in a rack they can. */
static bool family_reaches(const struct fit *fit, const struct fit_family *f,
                           uint32_t nodes)
{
    uint32_t least = f->curves[0].nodes;

    if (nodes > 1)
        return f->curves[f->curve_count - 1].nodes > 1;
    return least == 1 || least * f->gpus_per_node <= fit->machine.rack_gpus;
}

/* The family of COLL that reaches NODES and whose width is nearest, by ratio;
 * NULL: there is none. */
static const struct fit_family *family_find(const struct fit *fit,
                                            enum fit_coll coll, uint32_t nodes,
                                            uint32_t gpus)
{
    const struct fit_family *best = NULL;
    double best_ratio = INFINITY;

    for (uint32_t i = 0; i < fit->family_count; i++) {
        const struct fit_family *f = &fit->families[i];
        double ratio = (double)f->gpus_per_node / gpus;

        if (ratio < 1)
            ratio = 1 / ratio;
        if (f->coll == coll && ratio < best_ratio &&
            family_reaches(fit, f, nodes)) {
            best = f;
            best_ratio = ratio;
        }
    }
    return best;
}

/* --- the models of a family ----------------------------------------------- */

static bool level_is_known(const struct fit_level *levels,
                           const struct cost_nccl_query *q)
{
    return levels[q->nodes > 1 ? FIT_INTER : FIT_INTRA].known;
}

static double formula_us(const struct fit *fit, enum fit_formula formula,
                         const struct cost_nccl_query *q)
{
    if (!level_is_known(fit->levels[formula], q))
        return 0;
    return fit_formula_us(formula, q->coll, fit->levels[formula], q->bytes,
                          q->nodes, q->gpus_per_node);
}

static double answer_corrected(const struct fit *fit,
                               const struct fit_family *family,
                               const struct cost_nccl_query *q, unsigned *flags)
{
    (void)family;
    (void)flags;
    return formula_us(fit, FIT_CORRECTED, q);
}

static double answer_published(const struct fit *fit,
                               const struct fit_family *family,
                               const struct cost_nccl_query *q, unsigned *flags)
{
    (void)family;
    (void)flags;
    return formula_us(fit, FIT_PUBLISHED, q);
}

static bool regression_reaches(const struct fit_regression *r,
                               const struct cost_nccl_query *q)
{
    double ranks = (double)q->nodes * q->gpus_per_node;

    return r->known && q->bytes >= r->bytes_min && q->bytes <= r->bytes_max &&
           ranks >= r->ranks_min && ranks <= r->ranks_max;
}

static double answer_regression(const struct fit *fit,
                                const struct fit_family *family,
                                const struct cost_nccl_query *q,
                                unsigned *flags)
{
    double features[FIT_TERMS], us = 0;

    (void)flags;
    if (!regression_reaches(&family->regression, q))
        return 0;
    fit_regression_features(q->coll, fit->levels[FIT_PUBLISHED], q->bytes,
                            q->nodes, q->gpus_per_node, features);
    for (int i = 0; i < FIT_TERMS; i++)
        us += family->regression.terms[i] * features[i];
    return us;
}

static double answer_curves(const struct fit *fit,
                            const struct fit_family *family,
                            const struct cost_nccl_query *q, unsigned *flags)
{
    return cost_nccl_curves_us(fit, family, q, flags);
}

/* A model of how long a family's collectives last. */
struct cost_nccl_model_ops {
    /* Microseconds; 0 or less: the model has no answer to the query. Adds to
     * the flags. */
    double (*answer)(const struct fit *fit, const struct fit_family *family,
                     const struct cost_nccl_query *query, unsigned *flags);
    unsigned fallback_flags; /* added where the next model answers instead */
    enum fit_model fallback; /* the next model; itself: it is the last */
};

/* A family without a model of its own has the corrected formulas. */
static const struct cost_nccl_model_ops models[FIT_MODEL_COUNT] = {
    [FIT_MODEL_DEFAULT] = {answer_corrected, COST_NCCL_FALLBACK,
                           FIT_MODEL_CURVES},
    [FIT_MODEL_CURVES] = {answer_curves, 0, FIT_MODEL_CURVES},
    [FIT_MODEL_FORMULA] = {answer_corrected, COST_NCCL_FALLBACK,
                           FIT_MODEL_CURVES},
    [FIT_MODEL_PUBLISHED] = {answer_published, COST_NCCL_FALLBACK,
                             FIT_MODEL_CURVES},
    [FIT_MODEL_REGRESSION] = {answer_regression, COST_NCCL_FALLBACK,
                              FIT_MODEL_PUBLISHED},
};

/* FAMILY's own choice at NODES: each was made by leaving out just that. */
static enum fit_model model_at(const struct fit_family *f, uint32_t nodes)
{
    enum fit_model model = f->beyond_model;

    for (uint32_t i = 0; i < f->curve_count; i++)
        if (f->curves[i].nodes == nodes)
            return f->model;
    if (nodes > f->curves[0].nodes &&
        nodes < f->curves[f->curve_count - 1].nodes)
        model = f->between_model;
    return model ? model : FIT_MODEL_CURVES;
}

/* The model that answers Q: the one asked for, or the first of those after it
 * that has an answer. */
static void
model_ask(const struct fit *fit, const struct fit_family *family,
          const struct cost_nccl_query *q, struct cost_nccl_answer *answer)
{
    enum fit_model model = q->model ? q->model : model_at(family, q->nodes);

    for (;; model = models[model].fallback) {
        const struct cost_nccl_model_ops *ops = &models[model];
        answer->us = ops->answer(fit, family, q, &answer->flags);
        if (answer->us > 0 || ops->fallback == model)
            return;
        answer->flags |= ops->fallback_flags;
    }
}

/* --- factors on a model's answer ------------------------------------------ */

void cost_nccl_hats(double bytes, double hats[FIT_HATS])
{
    static const double centres[FIT_HATS] = {10, 18, 24, 30};
    double x = log2(fmax(bytes, 1));
    int i = 0;

    for (int j = 0; j < FIT_HATS; j++)
        hats[j] = 0;
    while (i + 2 < FIT_HATS && x > centres[i + 1])
        i++;
    double w = (x - centres[i]) / (centres[i + 1] - centres[i]);
    hats[i + 1] = fmin(fmax(w, 0), 1);
    hats[i] = 1 - hats[i + 1];
}

static double update_factor(const struct fit_update *update, double bytes)
{
    double hats[FIT_HATS], sum = 0;

    if (!update->count)
        return 1;
    cost_nccl_hats(bytes, hats);
    for (int i = 0; i < FIT_HATS; i++)
        sum += update->shift[i] * hats[i];
    return exp(sum);
}

/* t_q / t at Q, on straight lines between the quantiles fitted. */
static double straggler_factor(const struct fit_straggler *s, double q,
                               double ranks, double bytes)
{
    double before = 1, before_q = 0, x = ranks * log(fmax(bytes, 1));

    if (s->x_max > 0)
        x = fmin(fmax(x, s->x_min), s->x_max);
    for (int i = 0; i < FIT_QUANTILES; i++) {
        double here = 1 + fmax(0, s->intercept[i] + s->slope[i] * x);

        here = fmax(here, before);
        if (q <= quantiles[i])
            return before +
                   (here - before) * (q - before_q) / (quantiles[i] - before_q);
        before = here;
        before_q = quantiles[i];
    }
    return before;
}

static void answer_from(const struct fit *fit, const struct fit_family *family,
                        const struct cost_nccl_query *q,
                        struct cost_nccl_answer *answer)
{
    double ranks = (double)q->nodes * q->gpus_per_node;

    if (family->gpus_per_node != q->gpus_per_node)
        answer->flags |= COST_NCCL_OTHER_WIDTH;
    model_ask(fit, family, q, answer);
    answer->us *= update_factor(&family->update, q->bytes);
    if (q->quantile > 0 && family->straggler.known)
        answer->us *=
            straggler_factor(&family->straggler, q->quantile, ranks, q->bytes);
    else if (q->quantile > 0)
        answer->flags |= COST_NCCL_NO_QUANTILE;
    answer->us = fmax(answer->us, FIT_MIN_US);
    cost_nccl_band(family, q, answer);
}

/* --- where an answer comes from ------------------------------------------- */

/* The time of the smallest size measured on so many nodes, or fewer. */
static double least_us(const struct fit *fit, const struct fit_family *family,
                       const struct cost_nccl_query *q)
{
    struct cost_nccl_query small = *q;
    struct cost_nccl_answer answer = {.error = -1};
    const struct fit_curve *curve = &family->curves[0];

    for (uint32_t i = 1; i < family->curve_count; i++)
        if (family->curves[i].nodes <= q->nodes)
            curve = &family->curves[i];
    small.bytes = fmin(curve->bytes_min, q->bytes);
    answer_from(fit, family, &small, &answer);
    return answer.us;
}

/* Q's time as FAMILY's collective takes it, from its bus bandwidth: what it
 * takes beyond its smallest size is in proportion to the bytes on the bus. */
static void answer_as(const struct fit *fit, const struct fit_family *f,
                      const struct cost_nccl_query *q,
                      struct cost_nccl_answer *answer)
{
    double ranks = (double)q->nodes * q->gpus_per_node;
    struct cost_nccl_query other = *q;

    other.coll = f->coll;
    answer->flags = COST_NCCL_OTHER_COLL;
    answer_from(fit, f, &other, answer);
    double least = fmin(least_us(fit, f, &other), answer->us);
    double factor =
        fit_coll_factor(q->coll, ranks) / fit_coll_factor(f->coll, ranks);
    double latency =
        cost_tuning_latency_us(q->coll, q->nodes, q->gpus_per_node) /
        cost_tuning_latency_us(f->coll, q->nodes, q->gpus_per_node);
    answer->us = least * latency + (answer->us - least) * factor;
    cost_nccl_band(f, q, answer);
}

static bool answer_from_other(const struct fit *fit,
                              const struct cost_nccl_query *q,
                              struct cost_nccl_answer *answer)
{
    for (int i = 0; looks_like[q->coll][i] != q->coll; i++) {
        const struct fit_family *f = family_find(
            fit, looks_like[q->coll][i], q->nodes, q->gpus_per_node);
        if (!f)
            continue;
        answer_as(fit, f, q, answer);
        return true;
    }
    return false;
}

static bool has_curve(const struct fit_family *f, uint32_t nodes)
{
    for (uint32_t i = 0; i < f->curve_count; i++)
        if (f->curves[i].nodes == nodes)
            return true;
    return false;
}

/* These pass everything along the same rings. */
static bool is_ring(enum fit_coll coll)
{
    return coll == FIT_ALL_REDUCE || coll == FIT_ALL_GATHER ||
           coll == FIT_REDUCE_SCATTER;
}

/* The node count, of F's and OTHER's, that is nearest to NODES; 0: none. */
static uint32_t common_nodes(const struct fit_family *f,
                             const struct fit_family *other, uint32_t nodes)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < f->curve_count; i++) {
        uint32_t n = f->curves[i].nodes;

        if (n > 1 && has_curve(other, n) &&
            (!best || fabs(log((double)n / nodes)) <
                          fabs(log((double)best / nodes))))
            best = n;
    }
    return best;
}

/* Another ring that was measured at Q's node count and width, and at one of
 * OWN's, which is set in *COMMON; NULL: none. */
static const struct fit_family *sibling_find(const struct fit *fit,
                                             const struct fit_family *own,
                                             const struct cost_nccl_query *q,
                                             uint32_t *common)
{
    for (int i = 0; looks_like[q->coll][i] != q->coll; i++) {
        const struct fit_family *f = family_find(
            fit, looks_like[q->coll][i], q->nodes, q->gpus_per_node);

        if (!f || f->gpus_per_node != q->gpus_per_node || !is_ring(f->coll) ||
            !has_curve(f, q->nodes))
            continue;
        *common = common_nodes(own, f, q->nodes);
        if (*common)
            return f;
    }
    return NULL;
}

/* All-gather and reduce-scatter at a node count where another ring was
 * measured and they were not: as the other one, times half of what both differ
 * by (on a logarithmic scale) where both were measured. What a network does at
 * that count the other one has met. An all-reduce has trees of its own. */
static bool answer_from_sibling(const struct fit *fit,
                                const struct cost_nccl_query *q,
                                struct cost_nccl_answer *answer)
{
    const struct fit_family *own =
        family_find(fit, q->coll, q->nodes, q->gpus_per_node);
    struct cost_nccl_query there = *q;
    struct cost_nccl_answer mine = {.error = -1}, as = {.error = -1};

    if (q->nodes < 2 || q->coll == FIT_ALL_REDUCE || !own ||
        own->gpus_per_node != q->gpus_per_node || has_curve(own, q->nodes))
        return false;
    const struct fit_family *f = sibling_find(fit, own, q, &there.nodes);
    if (!f)
        return false;
    answer_from(fit, own, &there, &mine);
    answer_as(fit, f, &there, &as);
    answer_as(fit, f, q, answer);
    answer->us *= sqrt(mine.us / as.us);
    cost_nccl_band(f, q, answer);
    return true;
}

static bool answer_from_own(const struct fit *fit,
                            const struct cost_nccl_query *q,
                            struct cost_nccl_answer *answer)
{
    const struct fit_family *f =
        family_find(fit, q->coll, q->nodes, q->gpus_per_node);

    if (!f)
        return false;
    answer_from(fit, f, q, answer);
    return true;
}

/* The most that LEVEL carries; 0: not known. */
static double level_gbps(const struct fit_level *level)
{
    double most = 0;

    for (uint32_t i = 0; level->known && i < level->piece_count; i++)
        most = fmax(most,
                    level->pieces[i].limit_gbps + level->pieces[i].base_gbps);
    return most;
}

/* NCCL's own model with the bandwidths of FIT. */
static struct cost_tuning tuning_of(const struct fit *fit,
                                    const struct cost_nccl_query *q)
{
    const struct fit_level *levels = fit->levels[FIT_CORRECTED];
    double link = fit->machine.link_gbps;
    double level = level_gbps(&levels[FIT_INTRA]);

    if (level > 0) /* what one node reaches, without what its switch adds */
        link = link > 0 ? fmin(link, level) : level;
    return (struct cost_tuning){
        .coll = q->coll,
        .bytes = q->bytes,
        .nodes = q->nodes,
        .gpus = q->gpus_per_node,
        .intra_gbps = link,
        .inter_gbps = level_gbps(&levels[FIT_INTER]),
        .nvls = fit->machine.nvls,
    };
}

/* From the bandwidths of the link levels: by NCCL's model where it has one,
 * else by the formulas. */
static bool answer_from_levels(const struct fit *fit,
                               const struct cost_nccl_query *q,
                               struct cost_nccl_answer *answer)
{
    struct cost_tuning tuning = tuning_of(fit, q);

    if (!level_is_known(fit->levels[FIT_CORRECTED], q))
        return false;
    answer->flags = COST_NCCL_FORMULA;
    answer->us = cost_tuning_us(&tuning, COST_ALGO_AUTO);
    if (answer->us < 0)
        answer->us = formula_us(fit, FIT_CORRECTED, q);
    answer->us = fmax(answer->us, FIT_MIN_US);
    cost_nccl_band(NULL, q, answer);
    return true;
}

/* One node of a cluster that was measured on several only: NCCL's latencies
 * and what NCCL takes the GPU's links for. */
static bool answer_from_sheet(const struct fit *fit,
                              const struct cost_nccl_query *q,
                              struct cost_nccl_answer *answer)
{
    struct cost_tuning tuning = tuning_of(fit, q);
    double link = fit->machine.link_gbps, ranks = q->gpus_per_node;

    if (q->nodes > 1 || !(link > 0))
        return false;
    answer->flags = COST_NCCL_SHEET;
    answer->us = cost_tuning_us(&tuning, COST_ALGO_AUTO);
    if (answer->us < 0)
        answer->us = cost_tuning_latency_us(q->coll, 1, ranks) +
                     fit_coll_factor(q->coll, ranks) * q->bytes / (1e3 * link);
    cost_nccl_band(NULL, q, answer);
    return true;
}

/* Answers by one kind of measurement; false: there is none. */
typedef bool source_fn(const struct fit *fit, const struct cost_nccl_query *q,
                       struct cost_nccl_answer *answer);

/* Rings are alike: from another's measurements one errs by 9.7% (median over
 * the public clusters with two of them), by the formulas 22%. Of others the
 * formulas know better what goes where (doc/commfit.md). */
#define SOURCES 5
static source_fn *const ring_sources[SOURCES] = {
    answer_from_sibling, answer_from_own, answer_from_other, answer_from_levels,
    answer_from_sheet};
static source_fn *const other_sources[SOURCES] = {
    answer_from_own, answer_from_levels, answer_from_other, answer_from_sheet};

/* With the algorithm that is asked for: by how much NCCL's own model differs
 * between that one and its choice. */
static void answer_algo(const struct fit *fit, const struct cost_nccl_query *q,
                        struct cost_nccl_answer *answer)
{
    struct cost_tuning tuning = tuning_of(fit, q);

    if (!q->algo)
        return;
    if (!(tuning.inter_gbps > 0))
        tuning.inter_gbps = cost_nccl_network_gbps(fit);
    double chosen = cost_tuning_us(&tuning, COST_ALGO_AUTO);
    double asked = cost_tuning_us(&tuning, q->algo);
    if (chosen > 0 && asked > 0)
        answer->us *= asked / chosen;
    else
        answer->flags |= COST_NCCL_FALLBACK;
}

enum cost_algo cost_nccl_algo(const struct fit *fit,
                              const struct cost_nccl_query *query)
{
    struct cost_tuning tuning = tuning_of(fit, query);
    enum cost_algo best = COST_ALGO_AUTO;
    double least = INFINITY;

    if (!(tuning.inter_gbps > 0))
        tuning.inter_gbps = cost_nccl_network_gbps(fit);
    for (int i = COST_ALGO_AUTO + 1; i < COST_ALGO_COUNT; i++) {
        double us = cost_tuning_us(&tuning, (enum cost_algo)i);
        if (us >= 0 && us < least) {
            least = us;
            best = (enum cost_algo)i;
        }
    }
    return best;
}

int cost_nccl(const struct fit *fit, const struct cost_nccl_query *query,
              struct cost_nccl_answer *answer)
{
    source_fn *const *sources =
        is_ring(query->coll) ? ring_sources : other_sources;

    *answer = (struct cost_nccl_answer){.error = -1};
    if ((uint64_t)query->nodes * query->gpus_per_node == 1)
        return 0;
    for (int i = 0; i < SOURCES; i++)
        if (sources[i] && sources[i](fit, query, answer)) {
            double us = answer->us;
            unsigned sheets = COST_NCCL_FORMULA | COST_NCCL_SHEET;

            if (query->quantile > 0 && answer->flags & sheets)
                answer->flags |= COST_NCCL_NO_QUANTILE;
            answer_algo(fit, query, answer);
            cost_nccl_share(fit, query, answer);
            answer->low_us *= answer->us / us;
            answer->high_us *= answer->us / us;
            return 0;
        }
    return -1;
}
