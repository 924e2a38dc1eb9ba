/* SPDX-License-Identifier: Apache-2.0
 * What `memsim run` can report about the largest batch without running it. */
#ifndef MEMSIM_MEMSIM_RUN_BATCH_GUESS_H
#define MEMSIM_MEMSIM_RUN_BATCH_GUESS_H

#include <stdio.h>

#include "memsim/run/job.h"

/* COMMAND with {} in place of the number of the one option that has "batch" in
 * its name (--batch 8, --batch-size=8, train_batch_size=8). Free it with
 * batch_command_free. NULL: there is no such option, or there are several. */
char **batch_guess(char *const *command);

/* The name of the option that has {} in TEMPLATE, which has one; the caller
 * frees it. */
char *batch_guess_option(char *const *template);

/* Writes COMMAND in shell syntax, with a space before each word. */
void batch_command_write(char *const *command, FILE *out);

/* The fit-batch command for JOB's options and TEMPLATE; the caller frees
 * it. */
char *batch_guess_text(const struct job *job, char *const *template);

/* The results of earlier fit-batch runs: see batch_key. */
struct batch_past {
    const char *directory; /* of the cache */
    const char *programs;
    char *const *environment;
};

/* The largest batch with which TEMPLATE fits on JOB's GPUs, if an earlier
 * search from 1 on found it; 0: it is not known. */
uint64_t batch_known(const struct batch_past *past, const struct job *job,
                     char *const *template);

#endif
