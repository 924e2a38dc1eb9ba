/* SPDX-License-Identifier: Apache-2.0
 * The options of memsim replay. */
#ifndef MEMSIM_MEMSIM_CLI_REPLAY_OPTIONS_H
#define MEMSIM_MEMSIM_CLI_REPLAY_OPTIONS_H

#include "memsim/cli/output.h"
#include "memsim/study/replay_study.h"

struct replay_options {
    struct replay_question ask;
    const char *alloc_conf; /* the last; ask.memory.confs has all */
    const char *price;      /* file of --price; NULL: none */
    double budget;          /* 0: none */
    struct output_options output;
};

#endif
