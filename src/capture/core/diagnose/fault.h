/* SPDX-License-Identifier: Apache-2.0
 * What a kernel did wrong on the device. Such an error ends the context: "the
 * process must be terminated and relaunched" (cudaErrorIllegalAddress and
 * cudaErrorAssert in the runtime's manual), and every later call that needs
 * the context answers it. A launch itself succeeds, unless the environment
 * has CUDA_LAUNCH_BLOCKING=1. */
#ifndef MEMSIM_CAPTURE_CORE_DIAGNOSE_FAULT_H
#define MEMSIM_CAPTURE_CORE_DIAGNOSE_FAULT_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* A kernel of DEVICE failed with CODE, the first of them counts. The report
 * says so, with TEXT, and where the program was. */
void fault_raise(int device, int code, const char *text);

/* The same of something that is likely, but not certain: a note, no error. */
void fault_suspect(const char *text);

/* What a launch on DEVICE answers when its kernel has run. */
int fault_of_launch(int device);

/* Whether a launch waits for its kernel (CUDA_LAUNCH_BLOCKING=1). */
bool fault_is_blocking(void);

#endif
