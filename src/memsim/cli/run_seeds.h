/* SPDX-License-Identifier: Apache-2.0
 * memsim run --seeds: runs a job again with other seeds of --routing. Prints: a
 * part of the command line. */
#ifndef MEMSIM_MEMSIM_CLI_RUN_SEEDS_H
#define MEMSIM_MEMSIM_CLI_RUN_SEEDS_H

#include "memsim/result/result.h"
#include "memsim/run/job.h"

/* Runs JOB, of which FIRST is a run, until there are COUNT runs with the seeds
 * from JOB's on, and says in SEEDS what they need. Its runs share an import of
 * PyTorch (run/warm.h); nobody sees their output. Returns 0, or -1 with ERR
 * set. */
int run_seeds(const struct job *job, const struct rundir *first, uint32_t count,
              struct result_seeds *seeds, struct err *err);

#endif
