/* SPDX-License-Identifier: Apache-2.0
 * Measured times of operators on named GPUs, read from tables of commas. Line
 * 1 is "# source: ...", further "#" lines may say more, then the columns' names
 * and one row for each shape; doc/costs.md lists columns and operators. */
#ifndef MEMSIM_FITTING_OPS_H
#define MEMSIM_FITTING_OPS_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/cost/cost.h"

struct err;

/* What a source's clock covered. */
enum ops_clock {
    OPS_SUSTAINED, /* device time of kernels in a running model */
    OPS_BURSTS,    /* few repetitions, above what power lets it sustain */
    OPS_LAUNCH,    /* events round a call: its launch is included */
    OPS_LOOP,      /* many calls in a loop, back to back */
    OPS_DERIVED,   /* computed from rates that somebody published */
    OPS_ESTIMATED, /* by regression from the times of whole steps */
    OPS_CLOCKS,
};

const char *ops_clock_name(enum ops_clock clock);

struct ops_source {
    char *file;
    char *text; /* of "# source:" */
    char gpu_name[32];
    struct cost_gpu gpu;
    enum ops_clock clock;
    double launch_ns; /* taken off each time */
    double floor_ns;  /* times up to this say nothing of the kernel */
    double sustained; /* of arithmetic: a running model's time over these */
    double band;      /* of estimates: four of five are within this factor */
    size_t rows, dropped;
    bool simulated; /* it has the mark of common/base/simulated.h */
};

struct ops_sample {
    struct work work;
    double ns;
    uint64_t group; /* shapes of one group are held out together */
    uint32_t source;
};

struct ops {
    struct ops_source *sources;
    size_t source_count, source_capacity;
    struct ops_sample *samples;
    size_t count, capacity;
    bool takes_simulated; /* tables that memsim made, too */
};

/* Adds the rows of the file PATH, whose "# gpu:" line says what they were
 * measured on. Returns 0, or -1 with a part of the rows added. */
int ops_read(const char *path, struct ops *ops, struct err *err);

/* The same for COUNT files. */
int ops_read_all(char *const *paths, int count, struct ops *ops,
                 struct err *err);

void ops_free(struct ops *ops);

/* One row, by its columns; ops_row.c knows the operators. */
struct ops_row {
    const char *const *names; /* of the columns */
    char *const *values;
    int count;
};

/* The text under NAME, NULL where the table has no such column. */
const char *ops_row_text(const struct ops_row *row, const char *name);

/* Describes ROW as WORK and files it under GROUP. Returns 0, or -1 with the
 * cause. */
int ops_row_work(const struct ops_row *row, struct work *work, uint64_t *group,
                 struct err *err);

#endif
