/* SPDX-License-Identifier: Apache-2.0
 * Masks with few elements that are not zero, followed through the operations
 * that make one of another (values_few.h): what a mask selects is then as many,
 * and not the fraction that a policy says. */
#ifndef MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_FEW_H
#define MEMSIM_CAPTURE_CORE_COMPUTE_COMPUTE_FEW_H

#include "capture/core/compute/compute.h"
#include "capture/core/memory/values_few.h"

/* How many of COUNT elements at ADDRESS are not zero, at most; false where that
 * is not known. */
bool few_get(enum number_type type, uint64_t address, uint64_t count,
             struct few *few);

/* FEW of COUNT elements at ADDRESS are not zero. */
void few_note(enum number_type type, uint64_t address, uint64_t count,
              struct few few);

/* The same of COUNT numbers more, at places of a tensor of which BEFORE was
 * noted; ONES: they are. */
void few_scattered(const struct values_few *before, uint64_t count, bool ones);

/* Whether something of the sort is noted of an input of a dense LAUNCH. */
bool few_may_be(const struct compute *c, const struct kernel_launch *launch,
                uint64_t count);

/* Until few_share_end(), what is unknown of the mask of COUNT elements at
 * ADDRESS is taken to be true as often as is known of it. */
void few_share_begin(enum number_type type, uint64_t address, uint64_t count);
void few_share_end(void);

/* That share; negative: nothing is known. */
double few_share(void);

#endif
