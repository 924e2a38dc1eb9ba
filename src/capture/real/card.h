/* SPDX-License-Identifier: Apache-2.0
 * The memory of the real GPUs: what the program took, and what the context and
 * the libraries took beside it, by cuMemGetInfo. */
#ifndef MEMSIM_CAPTURE_REAL_CARD_H
#define MEMSIM_CAPTURE_REAL_CARD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/trace/trace.h"

/* The calling thread's current device, whose context is known from then on; -1
 * where it has no context. */
int card_current(void);

/* Whether BYTES more pass --cap: then the call is refused, without the GPU. */
bool card_is_full(int device, uint64_t bytes);

/* An allocation of BYTES at ADDRESS was given, or refused. RETRIES: PyTorch's
 * allocator asks again. */
void card_give(int device, uint64_t address, uint64_t bytes, enum trace_how how,
               bool retries);
void card_refuse(int device, uint64_t bytes, enum trace_how how, bool retries);

/* ADDRESS was taken back; false where nothing was given there. */
bool card_take_back(uint64_t address);

/* Looks at what libraries have taken since. The second: before ADDRESS is taken
 * back, so that the peak has both. */
void card_look(int device);
void card_look_before(uint64_t address);

/* WHO, a library that is memsim's own, has taken BYTES. */
void card_library(int device, const char *who, uint64_t bytes);

/* What the program is to see of the memory: with --cap, less. */
void card_show(int device, size_t *free_bytes, size_t *total_bytes);

#endif
