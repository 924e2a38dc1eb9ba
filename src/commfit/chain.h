/* SPDX-License-Identifier: Apache-2.0
 * A curve as a chain of alpha-beta segments: t = alpha + beta S between sizes
 * chosen among the measured ones. */
#ifndef MEMSIM_COMMFIT_CHAIN_H
#define MEMSIM_COMMFIT_CHAIN_H

#include "commfit/series.h"

struct chain {
    uint32_t count;
    struct fit_knot knots[SERIES_SIZES];
    double penalty; /* chosen: relative error that a knot must save */
    bool shared;    /* chosen: both placements have one time */
    double error;   /* mean relative error in cross-validation, each at most
                       CHAIN_ERROR_CAP; negative: too few sizes for it */
};

#define CHAIN_ERROR_CAP 0.5 /* no switch counts for more */

/* Fits S, of two sizes or more: the fewest knots, by dynamic programming, for
 * a penalty a knot that cross-validation chooses. */
void chain_fit(const struct series *s, struct chain *chain);

#endif
