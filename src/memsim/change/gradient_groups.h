/* SPDX-License-Identifier: Apache-2.0
 * Collectives of a profile that may average gradients already. */
#ifndef MEMSIM_MEMSIM_CHANGE_GRADIENT_GROUPS_H
#define MEMSIM_MEMSIM_CHANGE_GRADIENT_GROUPS_H

#include "memsim/change/records.h"

/* How many R's steps have: no sends, no receives, and none of a group that adds
 * before the first gradient is ready, as those of layers that are split over
 * ranks do. */
size_t gradient_collectives(const struct records *r);

#endif
