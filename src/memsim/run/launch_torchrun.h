/* SPDX-License-Identifier: Apache-2.0
 * torchrun's command line, as far as it says how many ranks there are. */
#ifndef MEMSIM_MEMSIM_LAUNCH_TORCHRUN_H
#define MEMSIM_MEMSIM_LAUNCH_TORCHRUN_H

#include <stdbool.h>
#include <stdint.h>

struct torchrun {
    uint32_t nodes, local; /* 1: not given; local 0: by the GPUs */
    char **command; /* of a rank: in COMMAND's array, which is changed */
};

/* Whether COMMAND is torchrun's, in one of its forms. Then *T says what it
 * asks for. */
bool torchrun_read(struct torchrun *t, char **command);

#endif
