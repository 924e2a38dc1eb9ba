/* SPDX-License-Identifier: Apache-2.0
 * How step times differ between two runs: what got slower. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_TIME_DIFF_H
#define MEMSIM_MEMSIM_REPORT_TEXT_TIME_DIFF_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/report/text/time_report.h"

/* A module or an operator of either run, ns of a step; 0: not there. */
struct time_change {
    const char *name; /* borrowed */
    double before, after;
    double before_calls, after_calls; /* operations of a step */
    const char *first; /* one of them; borrowed */
    size_t members; /* modules that it stands for, where those are folded */
};

struct time_diff {
    bool known; /* both runs have a step time; else nothing follows */
    double before_ns, after_ns;
    /* What gates compare, and its name: the step of a host that keeps up, which
     * is the same in each run, where both runs have it; else the step. Where
     * even then launches take longer than what they launch, the operations'
     * own time, if that got slower by more. */
    const char *gate;
    double gate_before_ns, gate_after_ns;
    struct time_change *modules, *operators; /* what changed most first */
    size_t module_count, operator_count;
};

void time_diff_make(struct time_diff *d, const struct result *before,
                    const struct result *after);
void time_diff_fini(struct time_diff *d);

/* By how many per cent the step got slower; negative: faster. */
double time_diff_percent(const struct time_diff *d);

/* The same of what gates compare. */
double time_gate_percent(const struct time_diff *d);

/* Reads the step time and the lists of "time" in ROOT into a timing with one
 * step, to be given to timing_destroy; *TIMING is NULL where ROOT has none.
 * Returns 0, or -1 with ERR set: ORIGIN's is damaged. */
int time_json_read(const cJSON *root, const char *origin,
                   struct timing **timing, struct err *err);

/* Reads "5%" or "5", for the option NAME. Returns 0 or -1. */
int time_limit_parse(const char *name, const char *text, double *percent,
                     struct err *err);

void time_diff_json(cJSON *root, const struct time_diff *d);
void time_diff_text(const struct time_diff *d, const char *dim,
                    const char *plain, FILE *out);

#endif
