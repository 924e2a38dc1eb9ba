/* SPDX-License-Identifier: Apache-2.0
 * Bugs of the program that CUDA answers with an error code, which programs
 * like to ignore: a note tells its user, once for each kind. */
#ifndef MEMSIM_CAPTURE_MISUSE_H
#define MEMSIM_CAPTURE_MISUSE_H

#include "capture/core/handle.h"

/* ADDRESS was given to be freed, and starts no live allocation. */
void misuse_free(uint64_t address);

/* Remembers what was freed, so that a second time can be told as such. */
void misuse_remember_free(uint64_t address);

/* HANDLE, said to be of KIND, is none, or not any more. */
void misuse_handle(enum handle_kind kind, uint64_t handle);

/* WHAT (an event, say) of card A was used with a stream of card B. */
void misuse_device(const char *what, int a, int b);

/* A copy or set at ADDRESS goes beyond what is allocated there. */
void misuse_range(uint64_t address);

#endif
