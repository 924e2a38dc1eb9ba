/* SPDX-License-Identifier: Apache-2.0
 * The combinations of `memsim sweep': names with values, and a command with
 * {name} where a value goes. Pure. */
#ifndef MEMSIM_MEMSIM_RUN_SWEEP_H
#define MEMSIM_MEMSIM_RUN_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"

#define SWEEP_GPU   "gpu" /* the name whose values are GPUs, not words */
#define SWEEP_NODES "nnodes" /* of --nodes: its values need no place */

struct sweep_axis {
    char *name;
    char **values;
    size_t count;
};

struct sweep {
    struct sweep_axis *axes;
    size_t axis_count;
    size_t combinations;
};

/* Reads COUNT words such as "batch=1,2,4". A comma in a value is written \\,.
 * Returns 0 with *SWEEP to be given to sweep_fini, or -1 with ERR set. */
int sweep_parse(struct sweep *sweep, char *const *words, size_t count,
                struct err *err);
void sweep_fini(struct sweep *sweep);

/* Counts the combinations of SWEEP's axes. Returns 0, or -1 with ERR set: they
 * are too many. */
int sweep_count(struct sweep *sweep, struct err *err);

/* The value of AXIS in combination AT; the last axis changes fastest. */
const char *sweep_value(const struct sweep *sweep, size_t at, size_t axis);

/* COMMAND with the values of combination AT in place of each {name}. Other
 * braces stay. Free it with batch_command_free. */
char **sweep_command(const struct sweep *sweep, size_t at,
                     char *const *command);

/* Checks that COMMAND has a {name} for each name except gpu, nnodes and
 * FREE_NAME (NULL: no more). Returns 0, or -1 with ERR set. */
int sweep_check(const struct sweep *sweep, char *const *command,
                const char *free_name, struct err *err);

#endif
