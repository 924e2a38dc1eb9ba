/* SPDX-License-Identifier: Apache-2.0
 * Who takes part in the communication of Chakra execution traces: groups by
 * number, and the two ends of sends. */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_CHAKRA_COMM_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_CHAKRA_COMM_H

#include "common/base/map.h"
#include "memsim/collectives/comm_log.h"
#include "memsim/report/report.h"

/* Communicators of the same ranks are one group, numbered from 1 on. */
struct chakra_groups {
    struct chakra_group {
        uint32_t *members; /* ranks of the world */
        uint32_t ranks;
        char id[COMM_ID_BYTES]; /* of the communicator, where its ranks are
                                   known by who else has it; or zeros */
    } *all;
    size_t count, capacity;
};

/* Adds those of COUNT ranks' LOGS, which are all that know each other. */
void chakra_groups_add(struct chakra_groups *groups,
                       const struct comm_log *const *logs, size_t count);
void chakra_groups_fini(struct chakra_groups *groups);
/* 0: COMM's ranks are not known. */
uint32_t chakra_groups_number(const struct chakra_groups *groups,
                              const struct comm *comm);
/* {"1": [0, 1, 2, 3], ...}, as ASTRA-sim's --comm-group-configuration. Returns
 * 0 or -1. */
int chakra_groups_write(const struct chakra_groups *groups, const char *path,
                        struct err *err);

/* One end of a message between two ranks. */
struct chakra_message {
    uint32_t from, to; /* ranks of the world */
    uint32_t tag;      /* the same on both ends; from 0 on */
    bool receive;
    uint64_t bytes;
};

/* The end that PART of a call on COMM is. Messages of one group from one rank
 * to another match in their order, which TAGS counts. Returns false where there
 * is none: to the rank itself, or to one that is not known. */
bool chakra_message_of(const struct chakra_groups *groups,
                       const struct comm *comm, const struct op_part *part,
                       struct map *tags, struct chakra_message *message);

#endif
