/* SPDX-License-Identifier: Apache-2.0
 * Ranges of memsim's own: the steps of `--step-mark', and episodes
 * (common/trace/episode.h). One that is open when the program uses a GPU for
 * the first time is recorded when the trace begins. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_STEP_MARK_H
#define MEMSIM_CAPTURE_CORE_TORCH_STEP_MARK_H

#include "capture/core/base/core.h"

/* Called by py/steps.py: a call of the function NAME begins, or ends (NULL). */
CORE_API void memsim_step_mark(const char *name);

/* Called by py/episodes.py: the episode NAME begins, or ends (NULL). */
CORE_API void memsim_episode(const char *name);

#endif
