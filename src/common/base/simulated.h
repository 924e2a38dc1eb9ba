/* SPDX-License-Identifier: Apache-2.0
 * The mark of what a simulated GPU gave, which nobody may take for a
 * measurement: a member, a record or a comment of this name, in traces of
 * profilers, memory snapshots, checkpoints and tables. capture/py/marks.py and
 * memsim/calibrate/calibrate.py write it, too. */
#ifndef MEMSIM_COMMON_BASE_SIMULATED_H
#define MEMSIM_COMMON_BASE_SIMULATED_H

#define SIMULATED_KEY     "memsim"
#define SIMULATED_TEXT    "simulated, not measured"
#define SIMULATED_COMMENT "# " SIMULATED_KEY ":"

/* What a report says of a FILE (%s) that has the mark. */
#define SIMULATED_NOTE                                                         \
    "%s was made by memsim: its times are simulated, nothing was measured"

struct err;

/* The message of programs that fit measurements: FILE has the mark. -1. */
int simulated_refuse(const char *file, struct err *err);

#endif
