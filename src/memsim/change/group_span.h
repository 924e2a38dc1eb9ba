/* SPDX-License-Identifier: Apache-2.0
 * How many ranks of a job the process groups of a profile reach over: as far
 * apart are the same ranks of two replicas. */
#ifndef MEMSIM_MEMSIM_CHANGE_GROUP_SPAN_H
#define MEMSIM_MEMSIM_CHANGE_GROUP_SPAN_H

#include "memsim/change/records.h"

/* At least 1. In a mesh of ranks, groups of 4 that are 2 apart reach over 8. */
uint32_t group_span(const struct records *r);

#endif
