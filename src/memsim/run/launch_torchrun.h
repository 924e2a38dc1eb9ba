/* SPDX-License-Identifier: Apache-2.0
 * Reads the number of ranks from torchrun's command line. */
#ifndef MEMSIM_MEMSIM_LAUNCH_TORCHRUN_H
#define MEMSIM_MEMSIM_LAUNCH_TORCHRUN_H

#include <stdbool.h>
#include <stdint.h>

struct torchrun {
    uint32_t nodes, local; /* 1: not given; local 0: one for each GPU */
    char **command; /* of a rank: in COMMAND's array, which is changed */
};

/* Whether COMMAND is torchrun's, in one of its forms. If so, *T is filled from
 * it. */
bool torchrun_read(struct torchrun *t, char **command);

#endif
