/* SPDX-License-Identifier: Apache-2.0
 * What NVML says of a GPU while the program runs: how much of its memory is
 * this process's, and whether it runs slower than it could. */
#ifndef MEMSIM_CAPTURE_REAL_USAGE_H
#define MEMSIM_CAPTURE_REAL_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Sets *BYTES to what this process has of DEVICE. False where NVML does not
 * say: it is not there, or knows processes by other numbers, as outside of
 * this container. */
bool usage_own_bytes(int device, uint64_t *bytes);

/* Looks at DEVICE's clock, at most every tenth of a second. What was seen is a
 * note when the process ends, if something slowed it down. */
void usage_look(int device);

#endif
