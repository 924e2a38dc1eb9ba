/* SPDX-License-Identifier: Apache-2.0
 * A run that a command reads: a directory of `memsim run -o', or a file of
 * `memsim run --json'. */
#ifndef MEMSIM_MEMSIM_STUDY_INPUT_RUN_H
#define MEMSIM_MEMSIM_STUDY_INPUT_RUN_H

#include <stdbool.h>

#include "memsim/report/json/result_read.h"
#include "memsim/run/rundir.h"

struct input_run {
    const char *name; /* borrowed; set by the caller */
    struct result_file file;
    struct rundir dir;
    bool is_dir;
};

/* Reads the run RUN->name. Returns 0 with *RUN to be given to input_run_close,
 * or -1 with ERR set. */
int input_run_open(struct input_run *run, struct err *err);
void input_run_close(struct input_run *run);

#endif
