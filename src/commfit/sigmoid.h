/* SPDX-License-Identifier: Apache-2.0
 * Log-sigmoid bandwidth curves, fitted with GSL's trust-region non-linear least
 * squares to times on a logarithmic scale. */
#ifndef MEMSIM_COMMFIT_SIGMOID_H
#define MEMSIM_COMMFIT_SIGMOID_H

#include "runtime/nccl/fit.h"

/* A time that is modelled as
 * us = fixed_us + steps x latency + sent_bytes / (1e3 bandwidth(bytes)). */
struct sigmoid_point {
    double bytes;      /* of the collective: what bandwidth is a function of */
    double sent_bytes; /* through this level */
    double steps;
    double fixed_us; /* what other levels take */
    double us;       /* measured */
    double log_size; /* of BYTES + 1; sigmoid_fit fills it in */
};

struct sigmoid_fit {
    double latency_us;
    uint32_t piece_count;
    struct fit_sigmoid pieces[FIT_PIECES];
    /* The same with a correction: what the sizes around a point are off by,
     * all of it, or half. */
    double corrected_error, half_error;
    double error; /* mean |log(model / measured)| in cross-validation;
                     negative: not scored (one piece at most, or too few
                     sizes: bandwidth is constant) */
};

/* Fits COUNT points, sorted by size, at least one. One sigmoid, or up to
 * MAX_PIECES where cross-validation over the sizes prefers more. Returns 0, or
 * -1 where the iteration did not converge from any start. */
int sigmoid_fit(struct sigmoid_point *points, uint32_t count,
                uint32_t max_pieces, struct sigmoid_fit *fit);

#endif
