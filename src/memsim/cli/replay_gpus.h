/* SPDX-License-Identifier: Apache-2.0
 * `memsim replay --gpu all': a recording on many GPUs, as one table. */
#ifndef MEMSIM_MEMSIM_CLI_REPLAY_GPUS_H
#define MEMSIM_MEMSIM_CLI_REPLAY_GPUS_H

#include "memsim/cli/replay_options.h"
#include "memsim/run/run.h"

/* Replays RUN on each of O->ask.gpu and prints the table. Returns the exit
 * status; CMD_RUN_FAILED with ERR set where it failed. */
int replay_gpus(const struct replay_options *o, const struct run *run,
                struct err *err);

#endif
