/* SPDX-License-Identifier: Apache-2.0
 * Fits with few numbers, by GSL's simplex: rooflines with a floor, and three
 * segments. Both make the mean of |ln(price / time)| small. */
#ifndef MEMSIM_OPFIT_LINE_H
#define MEMSIM_OPFIT_LINE_H

#include "fitting/ops.h"
#include "runtime/cost/cost_image.h"

/* Some samples of OPS, by index. */
struct ops_part {
    const struct ops *ops;
    const uint32_t *rows;
    size_t count;
};

/* The floor and two efficiencies that suit PART best: all three where short
 * times show the floor, else the efficiencies above the family's usual floor;
 * of fewer than 9 times, the family's usual line scaled by one number. PART is
 * not empty. */
struct cost_roofline line_fit(const struct ops_part *part);

/* The floor and the memory's efficiency alone, for work that bytes bound; the
 * floor may be one that no time comes near. PART is not empty. */
struct cost_roofline line_fit_bytes(const struct ops_part *part);

/* The three segments that suit PART best. PART is not empty. */
struct cost_segments segments_fit(const struct ops_part *part);

#endif
