/* SPDX-License-Identifier: Apache-2.0
 * Places where a policy chose because values are not known, for the report. */
#ifndef MEMSIM_CAPTURE_CORE_DIAGNOSE_ASSUMPTION_H
#define MEMSIM_CAPTURE_CORE_DIAGNOSE_ASSUMPTION_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* What was asked: NAME is the kernel's or function's, where neither ASKER, an
 * operator, nor PyTorch says more; of ELEMENTS the policy chose CHOSEN. */
struct guess {
    uint32_t name, asker; /* 0: whichever is at work */
    uint64_t device, stream;
    uint64_t elements, chosen;
    bool is_read; /* the host read CHOSEN numbers that are not known */
};

/* Records it, and notes WHAT for the user, once. */
CORE_API void memsim_assumption(const struct guess *guess, const char *what);

#endif
