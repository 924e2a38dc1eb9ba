/* SPDX-License-Identifier: Apache-2.0
 * Indices that a kernel of PyTorch asserts to be within bounds: where one is
 * known not to be, a GPU stops with "device-side assert triggered". */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_BOUNDS_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_BOUNDS_H

#include "capture/core/base/number.h"
#include "capture/core/base/launch.h"

struct compute_bounds {
    const char *what, *of;     /* "an index of gather", "places" */
    enum number_type type;     /* of an index */
    int64_t low, size, ignore; /* low <= index < size, or index == ignore */
};

/* Checks COUNT indices in a row at ADDRESS. */
void compute_bounds_check(const struct compute_bounds *bounds,
                          const struct kernel_launch *launch, uint64_t address,
                          uint64_t count);

/* For kernel.c, when a kernel is first used that PyTorch does not have itself:
 * it may write what nothing here sees. */
void compute_bounds_doubt(void);

#endif
