/* SPDX-License-Identifier: Apache-2.0
 * What `memsim replay` tells beyond what a run's report does. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_REPLAY_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_REPLAY_REPORT_H

#include <stdio.h>

#include "memsim/replay/recording.h"
#include "memsim/report/report.h"
#include "memsim/result/replay_lines.h"

struct replay_report {
    struct result result;
    const struct recording *recordings;
    size_t count;
    const struct recording *worst; /* the one to tell of closely */
    bool swept;
    char answer[128]; /* to the sweep; "": there is none */
    struct replay_lines lines; /* of the worst; empty: not asked for */
};

/* Fills R->result from the first rows of its recordings. */
void replay_report_init(struct replay_report *r,
                        const struct recording *recordings, size_t count,
                        const struct gpu *gpu, double fail_above_percent,
                        char *const *command);
void replay_report_fini(struct replay_report *r);

/* Makes the answer to --sweep, which the summary shows under the verdict. R
 * must not move any more. */
void replay_report_sweep(struct replay_report *r);

/* Finds what the worst has in memory by line. What cannot be found becomes a
 * note. */
void replay_report_lines(struct replay_report *r);

/* The lines, the fragmentation and the settings of REPORT, a struct
 * replay_report, for people; with VERBOSE the map of the segments, too. */
void replay_report_text(const void *report, const struct report_style *style,
                        FILE *out);

/* Of a struct replay_report: the run's JSON, and page, with a member
 * "replay"; flame.h. */
extern const struct report_ops replay_report_json;
extern const struct report_ops replay_report_html;
extern const struct report_ops replay_report_flame;

/* What the GPUs stood at, in place of what the recording says. */
extern const struct report_ops replay_report_perfetto;

#endif
