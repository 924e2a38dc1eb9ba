/* SPDX-License-Identifier: Apache-2.0
 * Which of the run's GPUs this process sees. */
#ifndef MEMSIM_CAPTURE_CORE_MEMORY_DEVICE_VISIBLE_H
#define MEMSIM_CAPTURE_CORE_MEMORY_DEVICE_VISIBLE_H

#include "common/trace/session.h"

/* Writes the cards that CUDA_VISIBLE_DEVICES leaves to VISIBLE; returns how
 * many they are. */
int device_visible_find(int visible[SESSION_DEVICES]);

/* Says so where it leaves none: COUNT is 0. */
void device_visible_note(int count);

#endif
