/* SPDX-License-Identifier: Apache-2.0
 * One pass over a trace for any number of listeners. Each gets every record of
 * a known kind, in order, with the state that all listeners share. */
#ifndef MEMSIM_COMMON_TRACE_PLAY_H
#define MEMSIM_COMMON_TRACE_PLAY_H

#include "common/trace/trace_read.h"

/* State that all listeners share. `names` stays the same, and valid, during
 * a whole pass. */
struct trace_now {
    const struct trace_names *names; /* this record's included */
    uint64_t ordinal;                /* of the record, from 0 */
    uint64_t first_ns;               /* of the first record */
};

struct trace_listener {
    void (*take)(void *context, const struct trace_item *item,
                 const struct trace_now *now);
    /* After the last record, unless reading failed; may be NULL. */
    void (*end)(void *context, const struct trace_now *now);
    void *context;
    /* At the very end, in the order of the listeners: their results go where
     * they are wanted, which TO says. ERR: why reading failed; NULL: it did
     * not. May be NULL. */
    void (*conclude)(void *to, const struct err *err);
    void *to;
};

/* Reads READER to its end and calls reader->progress at each chunk. Returns 0,
 * or -1 with ERR set; the listeners then got the records before the error. Each
 * is concluded in both cases. */
int trace_play(struct trace_reader *reader,
               const struct trace_listener *listeners, size_t count,
               struct err *err);

/* The same for the file PATH, with one listener. */
int trace_play_file(const char *path, const struct trace_listener *listener,
                    struct err *err);

/* Concludes LISTENERS of a trace that cannot even be opened, for ERR. */
void trace_conclude(const struct trace_listener *listeners, size_t count,
                    const struct err *err);

#endif
