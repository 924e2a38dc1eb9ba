/* SPDX-License-Identifier: Apache-2.0
 * Curves of a fit: the time of one collective on one number of nodes, and the
 * bandwidth of one link level. Pure arithmetic, on fits that fit_check
 * accepted. */
#ifndef MEMSIM_RUNTIME_FIT_CURVE_H
#define MEMSIM_RUNTIME_FIT_CURVE_H

#include "common/fit.h"

/* Time of BYTES on CURVE, at least a nanosecond. Below the smallest size
 * measured the first segment goes on until it meets FIT_CURVE_FLOOR of the
 * first time; above the largest the last one does. */
double fit_curve_us(const struct fit_curve *curve, double bytes, bool in_place);

/* The same for COUNT > 0 knots of a chain. */
double fit_chain_us(const struct fit_knot *knots, uint32_t count, double bytes,
                    bool in_place);

/* The same for COUNT > 0 sigmoids by size. */
double fit_sigmoid_us(const struct fit_sigmoid *pieces, uint32_t count,
                      double bytes);

/* Bandwidth at BYTES, in 1e9 bytes a second. */
double fit_sigmoid_gbps(const struct fit_sigmoid *pieces, uint32_t count,
                        double bytes);

/* Of the first time: no collective is known to be faster for being smaller. */
#define FIT_CURVE_FLOOR 0.25
#define FIT_MIN_US      1e-3

#endif
