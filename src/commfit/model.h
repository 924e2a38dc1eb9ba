/* SPDX-License-Identifier: Apache-2.0
 * Everything that is fitted to a set of series, and the baselines to compare
 * it with. */
#ifndef MEMSIM_COMMFIT_MODEL_H
#define MEMSIM_COMMFIT_MODEL_H

#include "commfit/series.h"
#include "runtime/nccl/fit.h"

/* t = a + b x: a fixed cost and one that grows with what is sent. */
enum baseline {
    BASELINE_ALPHA_BETA, /* a + b S */
    BASELINE_LOGGP,      /* (P - 1) a + (P - 1) / P S b: a step a peer */
    BASELINE_GENMODEL,   /* log2(P) a + (P - 1) / P S b: recursive halving */
    BASELINE_COUNT,
};

struct baselines {
    enum fit_coll coll;
    uint32_t gpus;
    double terms[BASELINE_COUNT][2];
};

/* Fits SET into *FIT: the levels, and for each of SET's families one family.
 * Names, errors and stragglers are the caller's. Returns 0, or -1 where an
 * iteration did not converge. The caller ends *FIT with fit_fini. */
int model_fit(const struct series_set *set, struct fit *fit, struct err *err);

/* The link levels alone, under each set of formulas. */
int levels_fit(const struct series_set *set, struct fit *fit, struct err *err);

/* The regression of FAMILY on S, under FIT's levels. Left unknown where there
 * are too few points. */
void regression_fit(const struct series_family *s, const struct fit *fit,
                    struct fit_family *family);

/* Fits the baselines to the points of S on several nodes, where there are any,
 * else to all. */
void baselines_fit(const struct series_family *s, struct baselines *b);

double baseline_us(const struct baselines *b, enum baseline which, double bytes,
                   double ranks);

/* Fits the stragglers of every family of FIT for which B has single ranks' or
 * iterations' times, or means that were measured again. */
void stragglers_fit(const struct bench *b, const struct series_set *set,
                    struct fit *fit);

#endif
