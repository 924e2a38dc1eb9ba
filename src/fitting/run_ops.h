/* SPDX-License-Identifier: Apache-2.0
 * The kernels of a run on a real GPU (memsim run --real) as measurements of it:
 * their work is what their arguments say. */
#ifndef MEMSIM_FITTING_RUN_OPS_H
#define MEMSIM_FITTING_RUN_OPS_H

#include "fitting/trace_ops.h"

/* Adds the kernels of the process's trace PATH but those of collectives.
 * Returns 0, or -1 with ERR set: it cannot be read, is of a simulated run, has
 * no times, or is of another GPU than those before. */
int run_ops_read(struct trace_ops *t, const char *path, struct err *err);

#endif
