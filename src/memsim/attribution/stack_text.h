/* SPDX-License-Identifier: Apache-2.0
 * Python stacks in the trace's format: one line for each frame, the innermost
 * first, "FILE:LINE FUNCTION". Pure. */
#ifndef MEMSIM_MEMSIM_ATTRIBUTION_STACK_TEXT_H
#define MEMSIM_MEMSIM_ATTRIBUTION_STACK_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Writes "train.py:31" to OUT: the innermost frame of STACK whose file is not
 * in an installed package, else the innermost. "" if STACK is NULL. */
void stack_line(const char *stack, char *out, size_t size);

/* Is FILE in an installed package or in Python itself? */
bool stack_is_package(const char *file);

/* Sets *FRAMES to the frames of STACK, the outermost first. The caller frees
 * them with stack_frames_free. Returns their number. */
size_t stack_frames(const char *stack, char ***frames);
void stack_frames_free(char **frames, size_t count);

#endif
