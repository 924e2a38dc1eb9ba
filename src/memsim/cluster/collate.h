/* SPDX-License-Identifier: Apache-2.0
 * What would hang or go wrong on a cluster because the ranks of a job do not
 * call the same collectives: for people. */
#ifndef MEMSIM_MEMSIM_COLLATE_H
#define MEMSIM_MEMSIM_COLLATE_H

#include "memsim/cluster/comm_join.h"

struct collation_fault {
    enum comm_fault fault;
    uint32_t rank, other_rank; /* of the world */
    uint64_t sequence; /* on the communicator, of sends on the pair; from 0 */
    char *text;        /* one line */
    char *stack, *other_stack; /* of Python (stack_text.h); NULL: not known */
};

struct collation {
    struct collation_fault *faults; /* the first COMM_MISMATCHES */
    size_t count;
    size_t dropped; /* further ones */
};

/* What JOB found in LOGS, which it was made of. To be given to
 * collation_destroy. */
struct collation *collation_create(const struct comm_job *job,
                                   const struct comm_log *const *logs);
void collation_destroy(struct collation *c); /* NULL is fine */

/* "missing", "order", "size", "type", "operation", "root" */
const char *comm_fault_name(enum comm_fault fault);

#endif
