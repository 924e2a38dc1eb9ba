/* SPDX-License-Identifier: Apache-2.0
 * What ranks that all hold the same come to together. */
#ifndef MEMSIM_CAPTURE_ALIKE_H
#define MEMSIM_CAPTURE_ALIKE_H

#include "capture/core/compute/compute_number.h"
#include "capture/core/base/core.h"

/* Makes of the COUNT numbers of TYPE at ADDRESS their sums over RANKS, where
 * they are few and known. */
CORE_API void memsim_alike_sum(uint64_t address, enum number_type type,
                               uint64_t count, unsigned ranks);

#endif
