/* SPDX-License-Identifier: Apache-2.0
 * A line on the terminal while a long trace is read; it goes when all is
 * read. */
#ifndef MEMSIM_MEMSIM_CLI_PROGRESS_H
#define MEMSIM_MEMSIM_CLI_PROGRESS_H

#include "memsim/study/traces.h"

/* NULL where nobody is watching. */
const struct study_progress *progress_line(void);

#endif
