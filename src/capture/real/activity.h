/* SPDX-License-Identifier: Apache-2.0
 * The GPU's times: CUPTI's records of kernels, copies and sets go to a file
 * beside the trace (common/trace/device_log.h). Each recorded call pushes its
 * number, so that CUPTI says which work is a part of it. Without CUPTI, without
 * its permission or where the program uses it itself there are no times, and a
 * note says so. */
#ifndef MEMSIM_CAPTURE_REAL_ACTIVITY_H
#define MEMSIM_CAPTURE_REAL_ACTIVITY_H

#include <stdint.h>

/* When the first context is there; does nothing later. */
void activity_begin(void);

void activity_push(uint64_t number);
void activity_pop(void);

#endif
