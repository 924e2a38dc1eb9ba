/* SPDX-License-Identifier: Apache-2.0
 * memsim replay PROFILE --dp N. A part of the command line. */
#ifndef MEMSIM_MEMSIM_CLI_REPLAY_REPLICAS_H
#define MEMSIM_MEMSIM_CLI_REPLAY_REPLICAS_H

#include "memsim/cli/replay_profile.h"

/* Says in a result what WHAT, a struct replicas_report, has. */
void replay_replicas_note(struct result *result, const void *what);

/* Replays P with gradients averaged over its data_parallel ranks: a profile
 * with collectives has them wider, one of a single GPU gets what DDP would do.
 * Returns memsim's exit status, ERR set where it failed. */
int replay_replicas(const struct replay_profile *p, struct err *err);

#endif
