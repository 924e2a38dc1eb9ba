/* SPDX-License-Identifier: Apache-2.0
 * Which GPUs the code runs on that a compiler put into a program. */
#ifndef MEMSIM_CAPTURE_FATBIN_H
#define MEMSIM_CAPTURE_FATBIN_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a GPU of capability MAJOR.MINOR can run what WRAPPER has, the
 * argument of __cudaRegisterFatBinary: code for that major version and the same
 * or an earlier minor one, or PTX of it or before, which the driver compiles.
 * True where WRAPPER is none. */
bool fatbin_runs(const void *wrapper, uint32_t major, uint32_t minor);

#endif
