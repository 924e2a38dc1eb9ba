/* SPDX-License-Identifier: Apache-2.0
 * What can be checked of one printed row: that its numbers agree with each
 * other within the digits that were printed. */
#ifndef MEMSIM_COMMFIT_BENCH_CHECK_H
#define MEMSIM_COMMFIT_BENCH_CHECK_H

#include "commfit/bench.h"

/* A number as printed: VALUE may be off by HALF, half a unit of its last
 * digit. PRESENT is false for N/A, nan, inf and anything that is no number. */
struct printed {
    double value;
    double half;
    bool present;
};

struct printed printed_parse(const char *token);

/* One measurement as printed. A bandwidth that is not present is not checked.
 */
struct printed_row {
    uint64_t bytes;
    struct printed us, algbw, busbw;
};

/* Checks ROW alone. Returns true, or false and says the REASON. */
bool printed_check(const struct printed_row *row, enum bench_reason *reason);

/* Checks busbw / algbw against COLL among RANKS. */
bool printed_fits(const struct printed_row *row, enum fit_coll coll,
                  double ranks);

/* The rank counts that busbw / algbw of COLL allows, from *LOW to *HIGH, which
 * hold bounds already and get narrower. Returns false where the factor does not
 * depend on them, or the row says nothing. */
bool printed_ranks(const struct printed_row *row, enum fit_coll coll,
                   double *low, double *high);

#endif
