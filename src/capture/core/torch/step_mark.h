/* SPDX-License-Identifier: Apache-2.0
 * The steps of `--step-mark'. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_STEP_MARK_H
#define MEMSIM_CAPTURE_CORE_TORCH_STEP_MARK_H

#include "capture/core/base/core.h"

/* Called by py/steps.py: a call of the function NAME begins, or ends (NULL).
 * The call in which the program uses a GPU for the first time is a step, too:
 * it is recorded when the trace begins. */
CORE_API void memsim_step_mark(const char *name);

#endif
