/* SPDX-License-Identifier: Apache-2.0
 * Stream capture on a real GPU: which streams are captured into which graph,
 * and which executable graph was made of it. */
#ifndef MEMSIM_CAPTURE_REAL_CAPTURES_H
#define MEMSIM_CAPTURE_REAL_CAPTURES_H

#include <stdatomic.h>
#include <stdint.h>

extern _Atomic uint32_t captures_on; /* captures under way */

/* Work of DEVICE is given to STREAM while something is captured. */
void captures_meet(int device, uint64_t stream);

/* A kernel was given to STREAM. */
void captures_count(uint64_t stream);

#endif
