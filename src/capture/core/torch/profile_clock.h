/* SPDX-License-Identifier: Apache-2.0
 * The clock of PyTorch's profiler. PyTorch times its operators by the
 * processor's cycles, which it makes nanoseconds of at the end
 * (c10/util/ApproximateClock.h, libkineto/src/ApproximateClock.h). memsim's
 * definitions of that come first: a cycle is when the program's clock showed
 * it, with all its jumps. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_PROFILE_CLOCK_H
#define MEMSIM_CAPTURE_CORE_TORCH_PROFILE_CLOCK_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* Whether FUNCTION, which tells the time for CUPTI, is PyTorch's, whose times
 * are made nanoseconds of here: then nanoseconds since 1970 stay as they are.
 */
CORE_API bool memsim_profile_clock_is(const void *function);

#endif
