/* SPDX-License-Identifier: Apache-2.0
 * The predicted timeline of a rank as a Chakra execution trace
 * (mlcommons/chakra, schema 0.0.4): a node for each operation and each call of
 * the host, with their dependencies. */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_CHAKRA_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_CHAKRA_H

#include "memsim/collectives/comm_log.h"
#include "memsim/report/report.h"

struct chakra_job {
    const struct result *result;
    const struct comm_log *const *logs; /* of its ranks */
    size_t count;
    const char *directory;
};

/* Writes the timelines of JOB to its directory, which is made where it is
 * missing: chakra.RANK.et for each rank, as ASTRA-sim names them, and
 * groups.json, which ranks each group has. Returns 0 or -1. */
int chakra_write(const struct chakra_job *job, struct err *err);

#endif
