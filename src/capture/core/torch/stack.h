/* SPDX-License-Identifier: Apache-2.0
 * Where in the program's Python a block is asked for: `memsim run --stacks'. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_STACK_H
#define MEMSIM_CAPTURE_CORE_TORCH_STACK_H

#include <stdint.h>

#include "capture/core/base/core.h"

/* This thread asks PyTorch's allocator for BYTES. To be called before the
 * allocator takes its lock: it waits for the interpreter's. */
void stack_begin(uint64_t bytes);

/* Called by py/limits.py: the program has PyTorch record stacks, or does not
 * any more. While it does, every stack is taken, with or without `--stacks'. */
CORE_API void memsim_torch_history(int on);

/* The id of the name that holds the Python stack that this thread is at; 0:
 * there is none (autograd's threads), or nothing is recorded. For calls that
 * are rare: it takes about as long as 20 frames take, some us, and waits for
 * the interpreter's lock. */
CORE_API uint32_t memsim_stack_here(void);

/* The id of the name that holds the stack of this thread's last request; 0:
 * none was taken. Forgets it. */
uint32_t stack_take(void);

#endif
