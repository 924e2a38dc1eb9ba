/* SPDX-License-Identifier: Apache-2.0
 * Questions about a kept run. */
#ifndef MEMSIM_MEMSIM_STUDY_RUN_STUDY_H
#define MEMSIM_MEMSIM_STUDY_RUN_STUDY_H

#include "memsim/result/result.h"
#include "memsim/run/run.h"
#include "memsim/run/rundir.h"
#include "memsim/study/options.h"
#include "memsim/study/traces.h"

/* Where advice comes from, besides the run itself; zeroed: nowhere. */
struct study_sources {
    const struct rundir *unlimited; /* see advice_run; may be NULL */
    uint64_t largest_batch;         /* that is known to fit; 0: not known */
    const char *batch_command;      /* that finds it; may be NULL */
    const char *batch_option;       /* whose value it is; likewise */
};

struct run_question {
    const struct study_options *options;
    const struct study_sources *sources;
    bool traces;   /* they are read in any case, not only for what needs them */
    bool events;   /* result.events are kept, for a Perfetto trace */
    bool snapshot; /* study_snapshot() will be called */
    const struct study_progress *progress; /* may be NULL */
};

/* A run, and what is known of it. */
struct run_study {
    const struct rundir *dir; /* borrowed */
    struct result result;
    struct traces traces;
    char **invocation; /* memsim's own command line; NULL: not known */
};

/* Takes what DIR's session says. COMMAND and DIR are borrowed until
 * study_run_close(). */
void study_run_open(struct run_study *s, const struct rundir *dir,
                    char *const *command);

/* Adds what QUESTION asks for. Returns 0, or -1 with ERR set where something
 * could not be found out; the rest is there. */
int study_run_ask(struct run_study *s, const struct run_question *question,
                  struct err *err);
void study_run_close(struct run_study *s);

/* Writes the allocator's calls of the process that came nearest to its end to
 * the file TO. Returns 0 or -1. */
int study_snapshot(const struct run_study *s, const char *to, struct err *err);

/* The result of the run in DIR, whose command was COMMAND, with what its traces
 * tell; to be given to result_fini. */
void study_result(struct result *result, const struct rundir *dir,
                  char *const *command);

/* Prices what the traces of RUN tell of, for RESULT; what cannot be read
 * becomes a note. Returns 0 or -1. */
int study_price(const struct study_options *options, const struct run *run,
                struct result *result, struct err *err);

#endif
