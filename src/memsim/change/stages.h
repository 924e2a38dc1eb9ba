/* SPDX-License-Identifier: Apache-2.0
 * A model that was recorded on one GPU as a pipeline: its layers are given to
 * stages, its microbatches to a schedule, and what goes from stage to stage is
 * sent and received. */
#ifndef MEMSIM_MEMSIM_CHANGE_STAGES_H
#define MEMSIM_MEMSIM_CHANGE_STAGES_H

#include "memsim/change/pipe_schedule.h"
#include "memsim/change/pipe_split.h"

struct stages_change {
    const char *stages;    /* pipe_split_read's */
    const char *schedule;  /* NULL: 1f1b, or interleaved */
    uint32_t microbatches; /* 0: as many as a step of the recording has */
    uint32_t node_ranks;   /* ranks of a node; 0: all */
    const char *prefix;    /* the layers' list; NULL: the largest */
};

/* Of a stage. */
struct stages_report_row {
    uint32_t rank, first, end; /* layers */
    uint64_t parameters;       /* elements */
    uint64_t sent_bytes;       /* of a microbatch, to the next stage; 0: none */
    uint32_t in_flight;        /* microbatches whose activations it has */
    uint64_t activation_bytes; /* of one microbatch, that its forward leaves */
};

struct stages_report {
    struct pipe_split split;
    enum pipe_schedule_kind kind;
    uint32_t layers, microbatches, recorded; /* microbatches of a step */
    char prefix[256];
    uint32_t steps, steps_left_out;
    struct stages_report_row rows[PIPE_STAGES_MAX];
};

/* Makes the path of RANK's recording. CONTEXT is the caller's. */
typedef void stages_path(void *context, uint32_t rank, char *path, size_t size);

/* Writes the recordings of the ranks, made of FROM, to what PATH says. Returns
 * 0, or -1 with ERR set: it cannot be read or written, or the change is not
 * sound. */
int stages_change(const struct stages_change *change, const char *from,
                  stages_path *path, void *context,
                  struct stages_report *report, struct err *err);

#endif
