/* SPDX-License-Identifier: Apache-2.0
 * What the files of timing share. */
#ifndef MEMSIM_MEMSIM_TIME_TIMING_INTERNAL_H
#define MEMSIM_MEMSIM_TIME_TIMING_INTERNAL_H

#include "common/base/map.h"
#include "memsim/attribution/module_table.h"
#include "memsim/time/timing.h"

/* Sums by a number that stands for a name. Zeroed, it is empty. */
struct tally {
    struct map places; /* index + 1 by key + 1 */
    struct tally_row {
        uint64_t key;
        double ns, calls;
    } *rows;
    size_t count, capacity;
};

void tally_add(struct tally *t, uint64_t key, double ns);
double tally_get(const struct tally *t, uint64_t key); /* its ns, or 0 */
void tally_fini(struct tally *t);

/* What an operation is called in reports; names are the trace's. The key tells
 * apart what has different names. */
uint64_t operator_key(const struct simulation_op *op);
void operator_name(const struct simulation_op *op,
                   const struct trace_names *names, char *text, size_t size);

/* What the devices did: as simulated, and as an imported profile has it. */
struct busy {
    struct spans simulated, measured;
};
void busy_add(struct busy *b, const struct simulation_op *op);
/* Sets what T's steps have of it, on DEVICE; T's typical step is known. */
void busy_conclude(struct busy *b, const struct simulation *s, unsigned device,
                   struct timing *t);
void busy_fini(struct busy *b);

/* A step's operations and calls, for its critical path. */
struct path {
    uint32_t step;
    struct simulation_op *ops; /* sorted by path_find */
    struct simulation_call *calls;
    size_t op_count, op_capacity, call_count, call_capacity;
};

void path_add_op(struct path *p, const struct simulation_op *op);
void path_add_call(struct path *p, const struct simulation_call *call);
/* Sets T's path, by name, the longest first. */
void path_find(struct path *p, const struct trace_names *names,
               struct timing *t);
void path_fini(struct path *p);

/* Sorts ROWS, the longest first, and keeps the first TIMING_ROWS. Returns how
 * many. */
size_t rows_finish(struct timing_row *rows, size_t count);
void rows_free(struct timing_row *rows, size_t count);

#endif
