/* SPDX-License-Identifier: Apache-2.0
 * The predicted timeline of a rank as a Chakra execution trace
 * (mlcommons/chakra, schema 0.0.4): a node for each operation and each call of
 * the host, with their dependencies. */
#ifndef MEMSIM_MEMSIM_REPORT_CHAKRA_H
#define MEMSIM_MEMSIM_REPORT_CHAKRA_H

#include "memsim/report/report.h"

/* Writes the timelines of RESULT to DIRECTORY, which is made where it is
 * missing: chakra.RANK.et for each rank, as ASTRA-sim names them. Returns 0 or
 * -1. */
int chakra_write(const struct result *result, const char *directory,
                 struct err *err);

#endif
