/* SPDX-License-Identifier: Apache-2.0
 * Where in the program's Python a block is asked for: `memsim run --stacks'. */
#ifndef MEMSIM_CAPTURE_STACK_H
#define MEMSIM_CAPTURE_STACK_H

#include <stdint.h>

/* This thread asks PyTorch's allocator for BYTES. To be called before the
 * allocator takes its lock: it waits for the interpreter's. */
void stack_begin(uint64_t bytes);

/* The id of the name that holds the stack of this thread's last request; 0:
 * none was taken. Forgets it. */
uint32_t stack_take(void);

#endif
