/* SPDX-License-Identifier: Apache-2.0
 * Errors on data that a fit has not seen. */
#ifndef MEMSIM_COMMFIT_SCORE_H
#define MEMSIM_COMMFIT_SCORE_H

#include "commfit/model.h"
#include "commfit/series.h"
#include "runtime/nccl/cost_nccl.h"

/* Who predicts. */
enum scorer {
    SCORE_FIT, /* what cost_nccl answers by default */
    SCORE_CURVES,
    SCORE_FORMULA,
    SCORE_PUBLISHED,
    SCORE_REGRESSION,
    SCORE_ALPHA_BETA,
    SCORE_LOGGP,
    SCORE_GENMODEL,
    SCORE_INTERPOLATION, /* of the table: linear between sizes, log-log between
                            node counts */
    SCORER_COUNT,
};

/* What was left out. */
enum held_out {
    HELD_ALTERNATE, /* every other size; the ends are not scored */
    HELD_FOLDS,     /* every fifth size, five times */
    HELD_BETWEEN,   /* a node count between two others */
    HELD_BEYOND,    /* the next larger node count */
    HELD_EVAL,      /* other files */
    HELD_NOTHING,   /* the fit on its own rows: not an error to expect */
    HELD_COUNT,
};

struct score_row {
    enum fit_coll coll;
    uint32_t nodes, gpus;
    double bytes;
    bool in_place;
    enum held_out held;
    double us;                      /* measured */
    double predicted[SCORER_COUNT]; /* NAN: no prediction */
    struct cost_nccl_answer answer; /* the fit's, where it has a prediction */
};

struct scores {
    size_t count, capacity;
    struct score_row *rows;
};

struct score_summary {
    size_t count;
    double median, p95, mape; /* relative */
    double band;              /* 80% quantile of |log(predicted / measured)| */
    double rmse_ms;
    double worst; /* relative */
    const struct score_row *worst_row;
};

/* Which rows; 0 in a field means all of them. */
struct score_filter {
    enum held_out held;
    bool by_family;
    enum fit_coll coll;
    uint32_t gpus, nodes;
    double bytes_min, bytes_max;
    int level; /* 1: one node; 2: several; 0: both */
};

/* Refits with parts of SET left out in every way that it allows, and scores
 * what was left out; a refit that does not converge scores nothing. The caller
 * frees SCORES->rows. */
void score_held_out(const struct series_set *set, struct scores *scores);

/* Scores FIT on every kept sample of B; with a QUANTILE (0: none) on that
 * quantile of each point's samples. */
void score_eval(const struct bench *b, const struct fit *fit, double quantile,
                struct scores *scores);

/* Sums up the rows that FILTER lets through; COUNT is 0 where there are none
 * with a prediction. */
struct score_summary score_sum(const struct scores *scores,
                               const struct score_filter *filter,
                               enum scorer who);

/* Writes the errors of each of FIT's families into it, and makes the model with
 * the least error the family's own: curves, unless another is clearly better.
 */
void score_store(const struct scores *scores, struct fit *fit);

const char *scorer_name(enum scorer who);
const char *held_out_name(enum held_out held);

#endif
