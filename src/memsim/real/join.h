/* SPDX-License-Identifier: Apache-2.0
 * Joins the trace of a real run, whose CALL records say which call each record
 * is of and when it was made, with what CUPTI said of the GPU's work:
 *
 *   a call with work            MEASURED, LAUNCH | COPY | SET | ...
 *   a call that waited          MEASURED, SYNC_...
 *   work of a captured stream   MEASURED of the graph's first launch, and it
 *   work of no recorded call    MEASURED, LAUNCH | COPY | SET, behind the last
 *                               call before it
 *
 * Each record has the time at which its call began, as in a simulated run. */
#ifndef MEMSIM_MEMSIM_REAL_JOIN_H
#define MEMSIM_MEMSIM_REAL_JOIN_H

#include <stdint.h>

#include "common/base/err.h"

struct joined {
    uint64_t works; /* that CUPTI told of */
    uint64_t alone; /* of those, of no recorded call */
    uint64_t lost;  /* that it did not tell of */
    uint64_t untimed; /* launches that no work was found for */
};

/* Replaces the trace PATH, and removes the file beside it, which LOG is. A
 * trace without times stays as it is. Adds to *JOINED. Returns 0, or -1 with
 * ERR set and both files as they were. */
int real_join(const char *path, const char *log, struct joined *joined,
              struct err *err);

#endif
