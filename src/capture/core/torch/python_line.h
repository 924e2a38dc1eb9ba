/* SPDX-License-Identifier: Apache-2.0
 * The line of the program's Python that this thread is at. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_PYTHON_LINE_H
#define MEMSIM_CAPTURE_CORE_TORCH_PYTHON_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "capture/core/base/core.h"

/* Writes "train.py:31" to TEXT: of the innermost frame whose file is none of an
 * installed package's, else of the innermost. "" where there is no Python, on a
 * thread without frames, and where this thread holds a lock of ours. It waits
 * for the interpreter's lock. */
void python_line(char *text, size_t size);

/* Writes the whole stack to TEXT, the innermost frame first, a line for each:
 * "/home/me/model.py:12 forward". The frames of torch.nn.Module's own calling
 * are left out; what does not fit in SIZE is, too. Otherwise as python_line. */
void python_stack(char *text, size_t size);

/* The answer with which the line that reads a flag now raises no error: 1 or 0;
 * -1: it raises none with either, or that is not known. */
int python_check(void);

/* Has ASK, which takes the interpreter's lock itself, give that answer. */
CORE_API void memsim_check_follow(int (*ask)(void));

/* Whether this thread saves tensors to a file: torch.save, safetensors,
 * torch.distributed.checkpoint. Nothing is decided by what they read. */
bool python_is_saving(void);

#endif
