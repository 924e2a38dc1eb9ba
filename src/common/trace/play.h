/* SPDX-License-Identifier: Apache-2.0
 * One pass over a trace for any number of listeners. Each gets every record of
 * a known kind, in order, with what the records before it said. */
#ifndef MEMSIM_COMMON_TRACE_PLAY_H
#define MEMSIM_COMMON_TRACE_PLAY_H

#include "common/trace/trace_read.h"

/* What all listeners ask for, kept once. `names` stays the same, and valid,
 * during all of a pass. */
struct trace_now {
    const struct trace_names *names; /* this record's among them */
    uint64_t ordinal;                /* of the record, from 0 */
    uint64_t first_ns;               /* of the first record */
};

struct trace_listener {
    void (*take)(void *context, const struct trace_item *item,
                 const struct trace_now *now);
    /* After the last record, unless reading failed; may be NULL. */
    void (*end)(void *context, const struct trace_now *now);
    void *context;
};

/* Reads READER to its end; reader->progress is called as it says. Returns 0,
 * or -1 with ERR set: the listeners got what came before. */
int trace_play(struct trace_reader *reader,
               const struct trace_listener *listeners, size_t count,
               struct err *err);

#endif
