/* SPDX-License-Identifier: Apache-2.0
 * Which GPUs the code runs on that a compiler put into a program. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_FATBIN_H
#define MEMSIM_CAPTURE_CORE_WORK_FATBIN_H

#include "common/catalogue/capability.h"

/* Which GPUs can run what WRAPPER has, the argument of __cudaRegisterFatBinary:
 * those with code of their major version and the same or an earlier minor one,
 * or with PTX of their version or before, which the driver compiles. All where
 * WRAPPER is none. */
struct capability_set fatbin_capabilities(const void *wrapper);

#endif
