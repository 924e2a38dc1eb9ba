/* SPDX-License-Identifier: Apache-2.0
 * Results of earlier fit-batch runs: a file for each run, named by a hash of
 * everything that its outcome depends on. */
#ifndef MEMSIM_MEMSIM_RUN_BATCH_CACHE_H
#define MEMSIM_MEMSIM_RUN_BATCH_CACHE_H

#include "common/base/err.h"
#include "memsim/run/batch.h"
#include "memsim/run/job.h"

/* Everything known that JOB's outcome depends on, as text: memsim itself (the
 * files PROGRAMS, separated by colons), the GPUs, the command, the contents of
 * the files that it names and of the Python files beside them, and the
 * variables of ENVIRONMENT that PyTorch and CUDA read. The caller frees it. */
char *batch_key(const struct job *job, const char *programs,
                char *const *environment);

/* The usable bytes of each of JOB's GPUs. */
uint64_t batch_capacity(const struct job *job);

/* DIR/memsim/fit-batch below XDG ($XDG_CACHE_HOME) or HOME/.cache, either of
 * which may be NULL. The caller frees it; NULL: both are NULL. */
char *batch_cache_directory(const char *xdg, const char *home);

/* Reads the outcome of KEY from DIR. False: it is not there. */
bool batch_cache_load(const char *dir, const char *key,
                      struct batch_outcome *outcome);

/* Writes it to DIR, which is created if it is missing. Returns 0 or -1. */
int batch_cache_store(const char *dir, const char *key,
                      const struct batch_outcome *outcome, struct err *err);

#endif
