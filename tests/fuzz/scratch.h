/* SPDX-License-Identifier: Apache-2.0
 * Where a target's files lie: tools/fuzz makes the directory and removes it,
 * however the target ends. */
#ifndef MEMSIM_FUZZ_SCRATCH_H
#define MEMSIM_FUZZ_SCRATCH_H

#include <stdlib.h>

static inline const char *fuzz_scratch(void)
{
    const char *given = getenv("FUZZ_SCRATCH");

    return given ? given : "/dev/shm";
}

#endif
