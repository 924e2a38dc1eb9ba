/* SPDX-License-Identifier: Apache-2.0
 * What ranks that all hold the same come to together. */
#ifndef MEMSIM_CAPTURE_ALIKE_H
#define MEMSIM_CAPTURE_ALIKE_H

#include <stdint.h>

/* Makes of the COUNT numbers of TYPE (enum number_type) at ADDRESS their sums
 * over RANKS, where they are few and known. */
void ranks_sum(uint64_t address, int type, uint64_t count, unsigned ranks);

#endif
