/* SPDX-License-Identifier: Apache-2.0
 * Which ranks of a communicator are processes of this run, and for which others
 * each of them sends. */
#ifndef MEMSIM_CAPTURE_NCCL_SOURCES_H
#define MEMSIM_CAPTURE_NCCL_SOURCES_H

#include "capture/nccl/nccl_fake.h"

struct sources {
    uint32_t count;
    uint32_t rank[MAILBOX_SEATS]; /* in the communicator, ascending */
};

/* Those of C that are processes, so far. */
void sources_find(const struct communicator *c, struct sources *s);

/* For each of COUNT ranks of C from FIRST on, the number in S of the one that
 * sends for it: the one that stands for it (common/trace/rank_axis.h), or where
 * it is not known which ranks of the world C has, the nearest one below it. S
 * has at least one. */
void sources_assign(const struct communicator *c, const struct sources *s,
                    uint32_t first, uint32_t count, uint8_t *by);

#endif
