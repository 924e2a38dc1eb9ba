/* SPDX-License-Identifier: Apache-2.0
 * The operators and named ranges that run on this thread, from PyTorch's
 * RecordFunction. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_TAG_OPERATOR_H
#define MEMSIM_CAPTURE_CORE_TORCH_TAG_OPERATOR_H

#include <stdbool.h>

#include "capture/core/base/core.h"

/* Begins to listen; LIBRARY is a handle of libtorch_cpu.so. */
void operator_attach(void *library);

/* A range of our own begins, or, NAME being NULL, ends. */
void operator_range_set(const char *name);

/* Ids of names: the innermost operator that does more than allocate, and the
 * innermost range of those that PyTorch's own parallelism sets; 0: none. */
uint32_t operator_name(void);
uint32_t operator_range(void);

/* The operator that the program itself called; 0: none. */
uint32_t operator_outermost(void);

/* The number of the innermost operator that runs on this thread, of all that
 * have run there; 0: none. */
uint64_t operator_serial(void);

/* Whether the operator NAME runs on this thread. */
bool operator_runs(const char *name);

/* True within an optimizer's step. An exception ends it like a return. */
bool operator_in_step(void);

#endif
