/* SPDX-License-Identifier: Apache-2.0
 * `memsim emulate': what it needs beside `memsim run --real'. */
#ifndef MEMSIM_MEMSIM_CLI_RUN_EMULATE_H
#define MEMSIM_MEMSIM_CLI_RUN_EMULATE_H

#include "memsim/cli/output.h"
#include "memsim/run/job.h"

/* The rank that runs where none is named. */
#define EMULATE_RANK "0"

/* Whether JOB, with the options O, can be emulated. Returns 0 or -1. */
int run_emulate_check(const struct job *job, const struct output_options *o,
                      struct err *err);

/* Whether each rank of JOB that is real has one of CARDS. Returns 0 or -1. */
int run_emulate_cards(const struct job *job, const struct real_cards *cards,
                      struct err *err);

/* How many times as long as the real rank the slowest of the others needs. */
double run_emulate_slowest(const struct job *job,
                           const struct output_options *o);

#endif
