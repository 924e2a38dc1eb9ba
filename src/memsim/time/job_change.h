/* SPDX-License-Identifier: Apache-2.0
 * Changes of a recorded job that need no new run: operations take another time,
 * or run beside what waited for them. */
#ifndef MEMSIM_MEMSIM_TIME_JOB_CHANGE_H
#define MEMSIM_MEMSIM_TIME_JOB_CHANGE_H

#include "common/base/err.h"
#include "common/base/map.h"
#include "playback/simulation.h"

#define CHANGES_MAX 16

enum job_change_kind {
    CHANGE_TIME,
    CHANGE_OVERLAP,
    CHANGE_LAYERS,
    CHANGE_SIZE, /* hidden, seq, batch */
    CHANGE_STAGES,
    CHANGE_PRECISION,
};

struct job_change {
    enum job_change_kind kind;
    double factor;  /* of CHANGE_TIME */
    char name[128]; /* a part of the operation's name; of CHANGE_LAYERS: of the
                       modules' list, "" where it is not given; of CHANGE_SIZE:
                       what has that size; of CHANGE_STAGES: "4", "4x2" ...; of
                       CHANGE_PRECISION: the recorded one */
    char to[16];    /* of CHANGE_PRECISION: the wanted one */
    /* layers (recorded 0: not given), or a size */
    uint32_t recorded, wanted;
};

/* Zeroed, there are none. */
struct job_changes {
    struct job_change all[CHANGES_MAX];
    size_t count;
    struct map effects; /* of operations, by hashes of their names */
    struct simulation_change hook;
    bool found[CHANGES_MAX]; /* it was about an operation */
};

/* Reads "time:NAME=FACTOR", "overlap:NAME", "layers[:MODULES]=[OLD:]NEW",
 * "hidden=OLD:NEW" (seq, batch), "precision=OLD:NEW" and "stages=P" (see
 * pipe_split.h), several with commas between them. What is none is refused.
 * Returns 0 or -1. */
int job_changes_parse(const char *text, struct job_changes *changes,
                      struct err *err);

/* Is C made in the recording, and not while that is replayed? */
bool job_change_is_of_recording(const struct job_change *c);

/* The change of layers, a size, the stages or the precision; NULL: there
 * is none. It is not made here, but in the recording (memsim/change). */
const struct job_change *
job_changes_recording(const struct job_changes *changes);

/* Lets SIMULATION make CHANGES, which must not move, of one trace. */
void job_changes_apply(struct job_changes *changes,
                       struct simulation_options *simulation);
void job_changes_fini(struct job_changes *changes);

#endif
