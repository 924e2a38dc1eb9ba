/* SPDX-License-Identifier: Apache-2.0
 * Hierarchical formulas: a collective's time from the bandwidth and latency of
 * each link level. doc/evidence/commfit.md derives them. */
#ifndef MEMSIM_RUNTIME_NCCL_FIT_FORMULA_H
#define MEMSIM_RUNTIME_NCCL_FIT_FORMULA_H

#include "runtime/nccl/fit.h"

/* t = latency + bytes / (1e3 bandwidth), summed over the levels: what a level
 * of the machine contributes. */
struct fit_shares {
    double intra_bytes; /* through an intra-node link */
    double inter_bytes; /* through a node's network */
    double intra_steps; /* times its latency */
    double inter_steps;
};

/* What COLL of BYTES on NODES nodes of GPUS each sends through each level. */
struct fit_shares fit_formula_shares(enum fit_formula formula,
                                     enum fit_coll coll, double bytes,
                                     double nodes, double gpus);

/* The time, from LEVELS (FIT_LEVELS of them). A level that is not known adds
 * nothing. */
double fit_formula_us(enum fit_formula formula, enum fit_coll coll,
                      const struct fit_level *levels, double bytes,
                      double nodes, double gpus);

/* The features of the regression: 1, t, l, P, S, tS, tP, lS, with S in MiB. */
void fit_regression_features(enum fit_coll coll, const struct fit_level *levels,
                             double bytes, double nodes, double gpus,
                             double features[FIT_TERMS]);

#endif
