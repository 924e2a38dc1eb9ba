/* SPDX-License-Identifier: Apache-2.0
 * Reads each trace of a run once, for all that is asked of it. Prints how far
 * it is, on a terminal: a part of the command line. */
#ifndef MEMSIM_MEMSIM_TRACES_H
#define MEMSIM_MEMSIM_TRACES_H

#include "memsim/report/result.h"
#include "memsim/run/rundir.h"

struct traces_wanted {
    const char *cluster; /* to price collectives on; NULL: not asked for */
    bool events;         /* result->events, for --perfetto */
};

/* Fills *RESULT, which result_init made of DIR's session, with what the traces
 * of DIR say. What cannot be read becomes a note. Returns 0, or -1 where there
 * is no such cluster, or the directory cannot be read. */
int traces_read(struct result *result, const struct rundir *dir,
                const struct traces_wanted *wanted, struct err *err);

/* Prices what the COUNT traces PATHS tell of, and nothing else. */
int traces_price(struct result *result, char *const *paths, size_t count,
                 const char *cluster, struct err *err);

#endif
