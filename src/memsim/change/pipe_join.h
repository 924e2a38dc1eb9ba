/* SPDX-License-Identifier: Apache-2.0
 * The recordings of a pipeline's ranks, of one stage each, as that of the whole
 * model on one GPU: of each microbatch the forwards of the stages one after the
 * other, then the backwards; the optimizer with the parameters of all. Sends,
 * receives and waits for them are left out. */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_JOIN_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_JOIN_H

#include <stddef.h>

#include "common/base/err.h"

/* Joins COUNT recordings, those at PATHS, and writes TO, a new file.
 * PREFIX: the layers' list; NULL: the largest. Returns 0, or -1 with ERR set:
 * one cannot be read, or they are not those of such a pipeline. */
int pipe_join(const char *const *paths, size_t count, const char *prefix,
              const char *to, struct err *err);

#endif
