/* SPDX-License-Identifier: Apache-2.0
 * The report of a replay that has times alone. Prints. */
#ifndef MEMSIM_MEMSIM_CLI_REPLAY_SHOW_H
#define MEMSIM_MEMSIM_CLI_REPLAY_SHOW_H

#include "memsim/cli/output.h"
#include "memsim/study/replay_profile.h"

/* Prints R, which came of P, and writes the files that O names. Returns
 * memsim's exit status, ERR set where it failed. */
int replay_show(const struct replay_profile *p, const struct replayed *r,
                const struct output_options *o, struct err *err);

#endif
