/* SPDX-License-Identifier: Apache-2.0
 * A predicted run beside the same script on a real GPU, and what it teaches. */
#ifndef MEMSIM_MEMSIM_STUDY_TRUTH_STUDY_H
#define MEMSIM_MEMSIM_STUDY_TRUTH_STUDY_H

#include "memsim/report/text/truth_text.h"
#include "memsim/study/input_run.h"
#include "memsim/study/options.h"

struct truth_input {
    struct input_run input;
    char *trace; /* path of the first process's */
};

struct truth_study {
    struct truth_input estimate, run;
    struct truth truth; /* what they did; borrows from both */
};

/* Reads the directories ESTIMATE and RUN. Returns 0 with *S to be given to
 * truth_study_close, or -1 with ERR set. *S must not move. */
int truth_study_open(struct truth_study *s, const char *estimate,
                     const char *run, const struct study_options *options,
                     struct err *err);
void truth_study_close(struct truth_study *s);

/* Writes what S teaches of the GPU to the file PATH, which is there for `memsim
 * run --corrections'. Returns 0, or -1 with ERR set: RUN has no times. */
int truth_study_learn(const struct truth_study *s, const char *path,
                      struct err *err);

#endif
