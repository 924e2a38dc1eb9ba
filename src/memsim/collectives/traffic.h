/* SPDX-License-Identifier: Apache-2.0
 * What a run's processes sent each other through NCCL, and how long a fitted
 * cluster would take for it. Pure but for the reading of traces. */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_TRAFFIC_H
#define MEMSIM_MEMSIM_COLLECTIVES_TRAFFIC_H

#include <stdio.h>

#include "fits/cluster.h"
#include "common/trace/play.h"
#include "runtime/nccl/cost_nccl.h"

/* Of calls that cost_nccl has no answer to. */
#define TRAFFIC_UNPRICED "not in the sum: the fit cannot tell"

#define TRAFFIC_ID_BYTES 24 /* what is unique of an ncclUniqueId */

/* One communicator, as one process knows it. */
struct traffic_comm {
    uint32_t rank, ranks;
    char id[TRAFFIC_ID_BYTES]; /* zeros: not told */
    bool split;                /* from another one */
    unsigned root;             /* that one, where MEMBERS are told */
    uint32_t *members; /* ranks there, else of the world; NULL: not told */
};

/* Calls that are alike. */
struct traffic_call {
    enum fit_coll coll;
    unsigned comm; /* index */
    uint32_t peer, from; /* of FIT_SENDRECV: the ranks that it sends to and
                            receives from; where it does one, both that one */
    bool in_place;
    uint64_t bytes;   /* as nccl-tests counts */
    uint32_t *counts; /* by step; 0 is what came before the first */
    size_t count_count;
    struct traffic_call *next; /* in its bucket */
};

/* What one process did. A step is the time from one forward to the next that
 * follows an optimizer's step, as attribution counts them. */
struct traffic_log {
    unsigned process; /* slot */
    uint32_t rank, world;
    uint32_t local; /* ranks of a host; 0: it does not say */
    struct traffic_comm *comms;
    size_t comm_count, comm_capacity;
    struct traffic_call **calls; /* by first appearance */
    size_t call_count, call_capacity;
    uint32_t steps; /* whole ones: 1 to this */
    struct traffic_reading *reading; /* during the pass */
};

/* A listener for trace_play of the trace of PROCESS; *LOG must not move until
 * the pass ends, and is to be given to traffic_log_fini. */
struct trace_listener traffic_log_init(struct traffic_log *log,
                                       unsigned process);

/* The same, of all of READER. Returns 0 with *LOG to be given to
 * traffic_log_fini, or -1 with ERR set and nothing to free. */
int traffic_log_read(struct traffic_log *log, unsigned process,
                     struct trace_reader *reader, struct err *err);
void traffic_log_fini(struct traffic_log *log);

struct traffic_sum {
    uint64_t calls, bytes;
    double us; /* of the calls that the cluster has an answer for */
};

/* Calls of one size that take the same time. */
struct traffic_size {
    uint64_t bytes, calls;
    double us; /* each; unpriced: 0 */
};

/* One collective among so many ranks, in one process. */
struct traffic_row {
    enum fit_coll coll;
    uint32_t ranks;                /* of the communicator */
    uint32_t nodes, gpus_per_node; /* where they are */
    bool assumed; /* which ranks of the world they are was not seen */
    struct traffic_sum all, step; /* step: the typical one */
    double error; /* the largest of the calls' medians; negative: unknown */
    uint64_t flagged[COST_NCCL_FLAGS]; /* calls with each flag */
    uint64_t unpriced;                 /* calls without an answer */
    struct traffic_size *sizes;        /* by size */
    size_t size_count, size_capacity;
};

struct traffic_rank {
    unsigned process;
    uint32_t rank;
    uint32_t steps;           /* whole ones */
    uint32_t typical;         /* the one of the median time, from 1; 0: none */
    double *step_us;          /* STEPS of them */
    struct traffic_row *rows; /* by collective, ranks, nodes */
    size_t row_count;
    struct traffic_sum all, step, before; /* before: the first step */
};

struct traffic {
    char cluster[64];
    char about[256];        /* what is known of it */
    bool measured;          /* false: from a data sheet */
    bool by_gpu;            /* of the usual nodes of a GPU */
    uint32_t gpus_per_node; /* ranks fill nodes of so many, in order */
    uint32_t world;
    double quantile; /* 0: the mean */
    struct traffic_rank *ranks; /* by rank; those with collectives */
    size_t rank_count;
};

/* How they are priced. */
struct traffic_pricing {
    double quantile;       /* of the times that were measured; 0: their mean */
    const char *placement; /* placement_make's; NULL: ranks fill nodes */
};

/* Prices COUNT LOGS of one run on CLUSTER. Ranks that a placement does not
 * cover fill nodes. */
struct traffic *traffic_price(const struct traffic_log *logs, size_t count,
                              const struct cluster *cluster,
                              const struct traffic_pricing *how);
void traffic_destroy(struct traffic *traffic); /* NULL is fine */

/* For people, in 80 columns; DIM and PLAIN switch colours, "" without. */
void traffic_text_write(const struct traffic *traffic, const char *dim,
                        const char *plain, FILE *out);

struct cJSON;
/* Adds "collectives" to ROOT. */
void traffic_json_add(struct cJSON *root, const struct traffic *traffic);

#endif
