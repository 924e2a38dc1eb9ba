/* SPDX-License-Identifier: Apache-2.0
 * `memsim run --live': two lines at the bottom of the terminal while the
 * command runs, with its memory, its step and the verdict so far.
 *
 * The command writes to a pseudo terminal, and one thread of memsim's passes on
 * what it writes: it takes the lines away before, and draws them after. So
 * nothing is written between them. Input, signals and job control are those of
 * the real terminal. */
#ifndef MEMSIM_MEMSIM_CLI_LIVE_H
#define MEMSIM_MEMSIM_CLI_LIVE_H

#include "memsim/run/spawn.h"

struct live;

/* A view of runs, for job.view; NULL where standard error is no terminal that
 * can show it. To be given to live_destroy. */
struct live *live_create(void);
void live_destroy(struct live *live);

/* What a job's runs are watched with; NULL for NULL. */
const struct spawn_view *live_view(const struct live *live);

#endif
