/* SPDX-License-Identifier: Apache-2.0
 * What would hang or go wrong on a cluster because the ranks of a job do not
 * call the same collectives, or not in an order in which they end: for people.
 */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COLLATE_H
#define MEMSIM_MEMSIM_COLLECTIVES_COLLATE_H

#include "memsim/collectives/comm_join.h"

struct collation_fault {
    enum comm_fault fault;
    uint32_t rank, other_rank; /* of the world; COMM_NONE: not known */
    uint64_t sequence; /* on the communicator, of sends on the pair; from 0 */
    char *text;        /* one line */
    char *stack, *other_stack; /* of Python (stack_text.h); NULL: not known */
};

struct collation {
    struct collation_fault *faults; /* the first COMM_MISMATCHES, and each
                                       rank's call that never ends */
    size_t count, capacity;
    size_t dropped; /* further ones */
};

/* What JOB found in LOGS, which it was made of. To be given to
 * collation_destroy. */
struct collation *collation_create(const struct comm_job *job,
                                   const struct comm_log *const *logs);
void collation_destroy(struct collation *c); /* NULL is fine */

/* Adds that LOG's CALL never ends. */
void collation_add_endless(struct collation *c, const struct comm_log *log,
                           uint32_t call);

/* Says of each wait for LOG's rank that its process ended, with status 0. */
void collation_tell_ended(struct collation *c, const struct comm_log *log);

/* Removes that others wait for RANK, or for somebody who is not known: RANK
 * failed, and took the others with it. */
void collation_drop_waits(struct collation *c, uint32_t rank);

/* Whether C has a call that another rank never makes. */
bool collation_has_missing(const struct collation *c);

/* "missing", "order", "size", "type", "operation", "root",
 * "endless", "ended" */
const char *comm_fault_name(enum comm_fault fault);

#endif
