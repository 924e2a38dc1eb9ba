/* SPDX-License-Identifier: Apache-2.0
 * Python stacks as the trace has them: a line for each frame, the innermost
 * first, "FILE:LINE FUNCTION". Pure. */
#ifndef MEMSIM_MEMSIM_STACK_TEXT_H
#define MEMSIM_MEMSIM_STACK_TEXT_H

#include <stddef.h>

/* Writes "train.py:31" to OUT: of STACK's innermost frame whose file is no
 * installed package's, else of the innermost. "" where STACK is NULL. */
void stack_line(const char *stack, char *out, size_t size);

/* The frames of STACK from the outermost on, each to be freed, as is the array;
 * returns how many. */
size_t stack_frames(const char *stack, char ***frames);

#endif
