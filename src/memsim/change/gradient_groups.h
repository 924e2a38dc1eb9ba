/* SPDX-License-Identifier: Apache-2.0
 * Collectives of a profile that may average gradients already. Those of at most
 * 4 KiB, as of a loss or a norm, do not count. */
#ifndef MEMSIM_MEMSIM_CHANGE_GRADIENT_GROUPS_H
#define MEMSIM_MEMSIM_CHANGE_GRADIENT_GROUPS_H

#include "memsim/change/records.h"

#define GRADIENT_SMALL_BYTES 4096

/* How many R's steps have: no sends, no receives, and none of a group that adds
 * before the first gradient is ready, as those of layers that are split over
 * ranks do. */
size_t gradient_collectives(const struct records *r);

/* The group that averages a profile's gradients. */
struct gradient_group {
    uint64_t communicator; /* 0: there is none */
    bool shards;           /* it gathers or scatters, too */
};

/* Finds it among those that add nothing before the first gradient is ready.
 * AVERAGE: its name; NULL: the only one. A profile that marks no gradients does
 * not say. Returns 0, or -1 with ERR set: there are several, or none of that
 * name. */
int gradient_group_find(const struct records *r, const char *average,
                        struct gradient_group *group, struct err *err);

#endif
