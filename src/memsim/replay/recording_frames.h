/* SPDX-License-Identifier: Apache-2.0
 * Where a recording's allocations were made: operator, module and, if they were
 * recorded, the lines of Python. */
#ifndef MEMSIM_MEMSIM_REPLAY_RECORDING_FRAMES_H
#define MEMSIM_MEMSIM_REPLAY_RECORDING_FRAMES_H

#include "common/base/map.h"
#include "common/trace/play.h"
#include "memsim/snapshot/snapshot.h"

/* The files of the frames that are no lines of Python. */
#define RECORDING_OPERATOR "operator"
#define RECORDING_MODULE   "module"

struct recording_frames {
    struct snapshot_frames frames;
    struct map stacks; /* numbers of stacks, by 1 + the place of the
                          allocation's record */
    const struct trace_names *names; /* during the pass */
    struct map modules;              /* 1 + ids of names, by number */
    struct map texts;                /* 1 + places, by a hash of the text */
    struct map known; /* numbers of stacks, by what they are made of */
};

/* A pass of the listener over a trace fills it. Give it to ..._destroy. */
struct recording_frames *recording_frames_create(void);
struct trace_listener recording_frames_listener(struct recording_frames *f);
void recording_frames_destroy(struct recording_frames *f); /* NULL is fine */

#endif
