/* SPDX-License-Identifier: Apache-2.0
 * Curves of a fit: the time of one collective on one number of nodes, and the
 * bandwidth of one link level. Pure arithmetic, on fits that fit_check
 * accepted. */
#ifndef MEMSIM_RUNTIME_NCCL_FIT_CURVE_H
#define MEMSIM_RUNTIME_NCCL_FIT_CURVE_H

#include "runtime/nccl/fit.h"

/* Time of BYTES on CURVE, at least a nanosecond. Above the largest size
 * measured the last segment goes on; below the smallest the time falls along
 * the slope of the first one, flattened, to what latencies usually are. */
double fit_curve_us(const struct fit_curve *curve, double bytes, bool in_place);

/* The same for COUNT > 0 knots of a chain, from the first knot's size on. */
double fit_chain_us(const struct fit_knot *knots, uint32_t count, double bytes,
                    bool in_place);

/* Bandwidth at BYTES, in 1e9 bytes a second. */
double fit_sigmoid_gbps(const struct fit_sigmoid *pieces, uint32_t count,
                        double bytes);

/* Time of BYTES by COUNT > 0 sigmoids alone. */
double fit_sigmoid_us(const struct fit_sigmoid *pieces, uint32_t count,
                      double bytes);

/* The factor at BYTES: between COUNT > 0 knots on a line in log(S), outside
 * that of the last one. */
double fit_correction(const struct fit_knot *knots, uint32_t count,
                      double bytes, bool in_place);

#define FIT_MIN_US 1e-3

#endif
