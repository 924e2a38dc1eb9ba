/* SPDX-License-Identifier: Apache-2.0
 * In which order the ranks of a pipeline compute, send and receive: the
 * schedules of torch.distributed.pipelining 2.11 (GPipe, 1F1B and the
 * interleaved 1F1B of https://arxiv.org/abs/2104.04473). Pure. */
#ifndef MEMSIM_MEMSIM_CHANGE_PIPE_SCHEDULE_H
#define MEMSIM_MEMSIM_CHANGE_PIPE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

#define PIPE_MICROBATCHES_MAX 4096

enum pipe_schedule_kind { PIPE_GPIPE, PIPE_1F1B, PIPE_INTERLEAVED };

enum pipe_what {
    PIPE_FORWARD,
    PIPE_BACKWARD,
    PIPE_EXCHANGE, /* begins sends and receives, one group of NCCL's */
    PIPE_WAIT,     /* the compute stream waits for an exchange's end */
    /* A tensor that was sent is given back to the allocator, which records an
     * event on NCCL's stream (c10/cuda/CUDACachingAllocator.cpp,
     * insert_events): a call of the host's. A stage's output is kept until its
     * backward, that of the last forward to the step's end; a gradient until
     * the schedule's variable gets the next one. */
    PIPE_RELEASE,
};

/* The output of a stage, or its gradient, on its way between two ranks. */
struct pipe_transfer {
    bool receive, gradient;
    uint32_t boundary; /* behind this stage, between it and the next */
    uint32_t peer;     /* rank */
};

struct pipe_action {
    enum pipe_what what;
    uint32_t stage, microbatch; /* of FORWARD and BACKWARD */
    uint32_t exchange;          /* EXCHANGE: its number; WAIT: for which */
    struct pipe_transfer parts[2];
    uint32_t part_count; /* of EXCHANGE: 1 or 2, in the order of the calls */
};

/* What one rank does in a step. Zeroed, it is empty. */
struct pipe_list {
    struct pipe_action *all;
    size_t count, capacity;
    uint32_t exchanges;
};

struct pipe_shape {
    enum pipe_schedule_kind kind;
    uint32_t ranks, chunks, microbatches;
};

/* "gpipe", "1f1b", "interleaved"; NULL: the one for CHUNKS. Returns 0, or -1
 * with ERR set. */
int pipe_schedule_named(enum pipe_schedule_kind *kind, const char *name,
                        uint32_t chunks, struct err *err);
const char *pipe_schedule_name(enum pipe_schedule_kind kind);

/* Fills LISTS, one for each rank, to be given to pipe_list_fini in any case.
 * Returns 0, or -1 with ERR set: the schedule has no such shape. */
int pipe_schedule_make(const struct pipe_shape *shape, struct pipe_list *lists,
                       struct err *err);
void pipe_list_fini(struct pipe_list *list);

/* The most microbatches of STAGE whose forward has run and whose backward has
 * not. */
uint32_t pipe_list_in_flight(const struct pipe_list *list, uint32_t stage);

#endif
