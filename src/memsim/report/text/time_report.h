/* SPDX-License-Identifier: Apache-2.0
 * Predicted step times in reports. */
#ifndef MEMSIM_MEMSIM_REPORT_TEXT_TIME_REPORT_H
#define MEMSIM_MEMSIM_REPORT_TEXT_TIME_REPORT_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "memsim/result/result.h"
#include "memsim/time/timing.h"

/* The rank whose typical step takes longest; of those that wait for each other
 * the one that waits least. NULL: no rank has a step. */
const struct result_rank *time_slowest_rank(const struct result *result);
const struct timing *time_slowest(const struct result *result); /* its timing */

/* A line for each rank (class) with its step; nothing where there is one. */
void time_ranks_write(const struct result *result, const char *dim,
                      const char *plain, FILE *out);

/* Adds "steps" to a rank; "time" to the report. */
void time_json_steps(cJSON *rank, const struct timing *timing);
void time_json_add(cJSON *root, const struct result *result);

/* Samples and tokens a second, where the arguments of the program's modules say
 * how many a step works on: a line, and "throughput" for TIME. */
void time_throughput_write(const struct result *result, FILE *out);

/* The same as a number. */
struct time_rate {
    double per_second; /* 0: not known */
    bool tokens;       /* else samples */
};
/* How much is known of what a step of T, or NULL, works on: 0 nothing, 1 its
 * samples, 2 its tokens. */
unsigned time_input_known(const struct timing *t);

struct time_rate time_rate_of(const struct result *result);
/* Tokens a second of the whole job, if each of its ranks has its own batch; 0:
 * not known. */
double time_job_tokens(const struct result *result);
/* In three digits: "185000" */
void time_format_rate(double per_second, char *text, size_t size);
/* What was counted, a line. */
void time_throughput_write_basis(const struct result *result, FILE *out);
void time_throughput_json(cJSON *time, const struct result *result);

/* What the slowest rank's step costs in energy, by the GPU's watts: a line, and
 * "energy_estimate" for TIME. The step is known. */
void time_energy_write(const struct result *result, FILE *out);
void time_energy_json(cJSON *time, const struct result *result);

/* Modules of the same name but for numbers, as one. */
struct time_fold {
    char *name;   /* "layers.*.mlp" */
    double ns;    /* of all */
    size_t count; /* of them */
};

/* ROWS by that name, the longest first, without modules that a part of theirs
 * has all the time of. To be given to time_fold_free. */
struct time_fold *time_fold_make(const struct timing_row *rows, size_t count,
                                 size_t *folded);
void time_fold_free(struct time_fold *rows, size_t count);

/* For people. BOLD and PLAIN switch it on and off, "" without. */
struct time_style {
    const char *bold, *plain;
    bool verbose; /* all that is known */
    int columns;  /* of a line; 0: TEXT_COLUMNS */
};

/* The step and its throughput: two lines, where a step is known. */
void time_text_write_step(const struct result *result, FILE *out);
/* What it is made of. */
void time_text_write(const struct result *result,
                     const struct time_style *style, FILE *out);

/* "47.9 ms" */
void time_format_ns(double ns, char *text, size_t size);

/* Whether the GPU waits for the CPU in a part of the step worth a line. */
bool time_waits_for_cpu(const struct timing *t);

/* Device time of a step's forward of the modules NAMES, as "A+B", with those
 * below them; 0: not known of each. */
double time_forward_ns(const struct timing *t, const char *names);

/* Notes how firm the step's time is, once it is known. */
void time_notes(struct result *result);

#define TIME_UNKNOWN_SHARE 0.05 /* of the operations: worth a note */

/* The parts of T's typical step in the profile that it was imported from, and
 * in the replay; nothing of other runs. */
void time_measured_write(const struct timing *t, FILE *out);

#endif
