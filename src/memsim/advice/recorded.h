/* SPDX-License-Identifier: Apache-2.0
 * A process's trace as replays and advice want it, filled by a pass over the
 * trace that others share. */
#ifndef MEMSIM_MEMSIM_ADVICE_RECORDED_H
#define MEMSIM_MEMSIM_ADVICE_RECORDED_H

#include "memsim/advice/tape.h"
#include "memsim/replay/recording.h"

#define RECORDED_LISTENERS 3 /* at most */

struct recorded {
    uint32_t process;
    char *path;
    struct replay_trace *trace;
    struct replay_trace_info info;
    struct tape_notes *notes; /* NULL: they were used up */
    struct recording_frames *frames; /* NULL: not asked for */
};

/* Readies R for a pass over the trace PATH of PROCESS; *R must not move before
 * the pass has ended. FRAMES: for a snapshot, where allocations were made. */
void recorded_init(struct recorded *r, uint32_t process, const char *path,
                   bool frames);
/* Returns how many of TO are set. */
size_t recorded_listen(struct recorded *r,
                       struct trace_listener to[RECORDED_LISTENERS]);
void recorded_fini(struct recorded *r);

/* How many steps it has in memory. */
size_t recorded_steps(const struct recorded *r);

/* Those of a run. */
struct recorded_list {
    struct recorded **all;
    size_t count, capacity;
};

/* The one of PROCESS; NULL: there is none, in a LIST that may be NULL, too. */
struct recorded *recorded_find(const struct recorded_list *list,
                               uint32_t process);

/* Opens the trace PATH of PROCESS as LIST has it, else from the file. Returns 0
 * or -1. */
int recorded_open(struct recording *recording, const struct recorded_list *list,
                  uint32_t process, const char *path,
                  const struct recording_options *options, struct err *err);

#endif
