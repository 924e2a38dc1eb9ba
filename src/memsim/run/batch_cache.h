/* SPDX-License-Identifier: Apache-2.0
 * What fit-batch found out before: a file for each run, named by a hash of all
 * that its outcome hangs on. */
#ifndef MEMSIM_MEMSIM_BATCH_CACHE_H
#define MEMSIM_MEMSIM_BATCH_CACHE_H

#include "common/base/err.h"
#include "memsim/run/batch.h"
#include "memsim/run/job.h"

/* All that JOB's outcome hangs on, as far as we can see, as text: memsim itself
 * (the files PROGRAMS, separated by colons), the GPUs, the command, what is
 * in the files that it names and in the Python files beside them, and the
 * variables of ENVIRONMENT that PyTorch and CUDA read. The caller frees it. */
char *batch_key(const struct job *job, const char *programs,
                char *const *environment);

/* The bytes of each of JOB's GPUs that may be used. */
uint64_t batch_capacity(const struct job *job);

/* DIR/memsim/fit-batch below XDG ($XDG_CACHE_HOME) or HOME/.cache, either of
 * which may be NULL. The caller frees it; NULL: there is no such place. */
char *batch_cache_directory(const char *xdg, const char *home);

/* Finds the outcome of KEY in DIR. False: it is not there. */
bool batch_cache_load(const char *dir, const char *key,
                      struct batch_outcome *outcome);

/* Keeps it; DIR is made where it is not there. Returns 0 or -1. */
int batch_cache_store(const char *dir, const char *key,
                      const struct batch_outcome *outcome, struct err *err);

#endif
