/* SPDX-License-Identifier: Apache-2.0
 * Memory of the card that NCCL would take: its buffers, and what its library
 * takes when it starts. */
#ifndef MEMSIM_CAPTURE_EMULATE_MEMORY_H
#define MEMSIM_CAPTURE_EMULATE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Takes BYTES of DEVICE, the current one, for WHO (a literal): CORE_OK, or why
 * not. ONCE: WHO gets it once. What an ended object had serves the next one. */
int memory_take(int device, const char *who, uint64_t bytes, bool once);
void memory_end(int device, const char *who);

#endif
