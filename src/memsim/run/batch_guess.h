/* SPDX-License-Identifier: Apache-2.0
 * What `memsim run` can say of the largest batch without running anything. */
#ifndef MEMSIM_MEMSIM_BATCH_GUESS_H
#define MEMSIM_MEMSIM_BATCH_GUESS_H

#include <stdio.h>

#include "memsim/run/job.h"

/* COMMAND with {} in place of the number of the one option that has "batch" in
 * its name (--batch 8, --batch-size=8, train_batch_size=8), to be given to
 * batch_command_free; NULL: there is none, or there are several. */
char **batch_guess(char *const *command);

/* COMMAND as a shell takes it, a space before each word. */
void batch_command_write(char *const *command, FILE *out);

/* The fit-batch command that JOB's options and TEMPLATE make; the caller frees
 * it. */
char *batch_guess_text(const struct job *job, char *const *template);

/* What fit-batch left behind: see batch_key. */
struct batch_past {
    const char *directory; /* of the cache */
    const char *programs;
    char *const *environment;
};

/* The largest batch with which TEMPLATE fits on JOB's GPUs, where a search
 * from 1 on found that before; 0: it is not known. */
uint64_t batch_known(const struct batch_past *past, const struct job *job,
                     char *const *template);

#endif
