/* SPDX-License-Identifier: Apache-2.0
 * A profile under DistributedDataParallel as one without it: what DDP calls is
 * taken out, so that what it would do in a changed job can be put in
 * (replicas.h):
 *
 *   backward  g * g * [reduce] g * [reduce] wait copy copy copy   optimizer
 *   becomes   g   g            g                                  optimizer
 *
 * A kernel (*) brings each gradient into its bucket. Collectives of other
 * groups, such as those of layers that are split over ranks, stay. */
#ifndef MEMSIM_MEMSIM_CHANGE_AVERAGES_H
#define MEMSIM_MEMSIM_CHANGE_AVERAGES_H

#include "common/base/err.h"

#include <stdint.h>

struct averages_report {
    uint32_t ranks;   /* that averaged; 0: no group does, no file */
    uint32_t reduces; /* all-reduces that were taken out */
};

/* Takes the all-reduces of the group AVERAGE out of the profile FROM, with the
 * kernels and copies of their buckets, and writes TO, a new file. AVERAGE NULL:
 * of the group that all-reduces behind the first gradient alone. Returns 0, or
 * -1 with ERR set: it cannot be read, there are several such groups, or they do
 * something else than DDP does by default. */
int averages_take(const char *average, const char *from, const char *to,
                  struct averages_report *report, struct err *err);

#endif
