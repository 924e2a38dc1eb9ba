/* SPDX-License-Identifier: Apache-2.0
 * What one process said and called through NCCL: its communicators, and its
 * collectives in the order of the operations that op_trace makes of the trace.
 */
#ifndef MEMSIM_MEMSIM_COLLECTIVES_COMM_LOG_H
#define MEMSIM_MEMSIM_COLLECTIVES_COMM_LOG_H

#include "common/trace/op.h"
#include "common/trace/trace_read.h"
#include "memsim/attribution/module_table.h"

#define COMM_ID_BYTES 24 /* what is unique of an ncclUniqueId */
#define COMM_NONE     UINT32_MAX

enum comm_kind {
    COMM_ALL_REDUCE,
    COMM_ALL_GATHER,
    COMM_REDUCE_SCATTER,
    COMM_BROADCAST,
    COMM_REDUCE,
    COMM_ALL_TO_ALL,
    COMM_GATHER,
    COMM_SCATTER,
    COMM_PAIR, /* sends and receives */
    COMM_ONE_SIDED, /* puts, signals and waits for them: not joined */
    COMM_OTHER,
    COMM_KINDS,
};

/* A communicator, as this process knows it. */
struct comm {
    uint64_t handle;
    uint32_t rank, ranks;
    char id[COMM_ID_BYTES]; /* zeros: not told */
    uint32_t *members;      /* ranks of the world; NULL: not told */
    bool guessed; /* it was split, and which ranks it has is not told */
};

/* A collective, or a group of sends and receives. */
struct comm_call {
    uint32_t comm; /* index */
    enum comm_kind kind;
    uint32_t part_first, part_count; /* of COMM_PAIR: at least one */
    uint32_t name, module, operator; /* ids */
    uint32_t stack;                  /* of Python; 0: not known */
    uint32_t phase;                  /* enum trace_phase_kind */
    uint64_t count, type, operation, root, bytes;
    uint64_t host_ns;
    uint64_t start_ns, duration_ns; /* as measured; 0: not an imported one */
    bool by_script; /* of an imported one: the thread of the steps called it */
    bool in_forward; /* likewise; kernels of a backward follow in its step */
};

struct comm_log {
    uint32_t rank, world; /* as the process says; world 0: it does not */
    uint32_t local;       /* ranks of a node; 0: it does not say */
    uint64_t first_ns;    /* of the first record */
    bool imported;        /* a profile: kernels of NCCL's, peers not known */
    uint32_t script;      /* likewise: the thread of the last step */
    size_t step_first;    /* likewise: the step's first call that may be in a
                             forward */
    bool has_backward;    /* likewise: another thread launched kernels */
    bool ended; /* the process, by itself and with status 0 */
    struct comm *comms;
    size_t comm_count, comm_capacity;
    struct comm_call *calls;
    size_t call_count, call_capacity;
    struct op_part *parts;
    size_t part_count, part_capacity;
    struct trace_names names;
    struct module_table modules;
    struct map handles; /* index + 1 by handle: the last one of that handle */
};

/* Zeroed, a log is empty; comm_log_fini ends it. Each record of the trace is to
 * be given to comm_log_record, then its operations to comm_log_op. */
void comm_log_record(struct comm_log *log, const struct trace_item *item);
void comm_log_op(struct comm_log *log, const struct op *op);
void comm_log_fini(struct comm_log *log);

/* The kind of NAME, a function of NCCL's or a kernel of it. */
enum comm_kind comm_kind_of(const char *name);

#endif
