/* SPDX-License-Identifier: Apache-2.0
 * A directory for traces that are used once: it goes at the end, and when a
 * signal ends the program. In TMPDIR, or /tmp. */
#ifndef MEMSIM_MEMSIM_STUDY_SCRATCH_H
#define MEMSIM_MEMSIM_STUDY_SCRATCH_H

#include <limits.h>

#include "common/base/err.h"

struct scratch {
    char path[PATH_MAX]; /* "": there is none */
};

/* Makes one. Returns 0, or -1 with ERR set and nothing to remove. */
int scratch_make(struct scratch *s, struct err *err);

/* Removes it with the traces in it. */
void scratch_remove(struct scratch *s);

/* A file without a name, open for reading and writing, to be closed; -1: there
 * is none. */
int scratch_file(void);

#endif
