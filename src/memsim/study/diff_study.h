/* SPDX-License-Identifier: Apache-2.0
 * What changed between two runs. */
#ifndef MEMSIM_MEMSIM_STUDY_DIFF_STUDY_H
#define MEMSIM_MEMSIM_STUDY_DIFF_STUDY_H

#include "memsim/report/text/diff_report.h"
#include "memsim/study/input_run.h"

struct diff_question {
    const char *before, *after; /* directories of runs, or their JSON */
    const char *fail_above, *fail_slower; /* limits; NULL: none */
    bool peaks; /* alone; else runs have to tell whose memory it is */
};

/* The report points into the rest, which so must not move. */
struct diff_study {
    struct input_run before, after;
    struct diff diff;
    struct time_diff time;
    struct diff_report report;
};

/* Compares what Q names. Returns 0 with *D to be given to diff_study_close, or
 * -1 with ERR set. */
int diff_study_open(struct diff_study *d, const struct diff_question *q,
                    struct err *err);
void diff_study_close(struct diff_study *d);

#endif
