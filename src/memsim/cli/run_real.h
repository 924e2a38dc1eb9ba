/* SPDX-License-Identifier: Apache-2.0
 * `memsim run --real`: what is done before and after the command. */
#ifndef MEMSIM_MEMSIM_CLI_RUN_REAL_H
#define MEMSIM_MEMSIM_CLI_RUN_REAL_H

#include <stdbool.h>
#include <stdint.h>

#include "memsim/run/job.h"

/* Whether JOB's options go with --real and --cap. Returns 0 or -1. */
int run_real_check(bool real, uint64_t cap_bytes, const struct job *job,
                   struct err *err);

/* Finds this machine's GPUs, in *CARDS, for JOB, and says what a reader of the
 * figures has to know of them. Returns 0, or -1 with ERR set. */
int run_real_start(struct job *job, struct real_cards *cards, bool quiet,
                   struct err *err);

/* The traces of DIR get the GPUs' times. */
void run_real_end(const struct rundir *dir, bool quiet);

#endif
