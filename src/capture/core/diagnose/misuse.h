/* SPDX-License-Identifier: Apache-2.0
 * Bugs of the program for which CUDA returns an error code. Programs often
 * ignore it, so the report has a note, once for each kind and place. Inner code
 * finds the error but does not have the call's name, so the text is kept, for
 * this thread, until memsim_misuse_call() adds the name. */
#ifndef MEMSIM_CAPTURE_CORE_DIAGNOSE_MISUSE_H
#define MEMSIM_CAPTURE_CORE_DIAGNOSE_MISUSE_H

#include "capture/core/base/handle.h"

struct kernel;
struct kernel_launch;

/* HANDLE, said to be of KIND, is none, or not any more: what the call answers.
 */
int misuse_handle(enum handle_kind kind, uint64_t handle);

/* WHAT (an event, say) of GPU A was used with a stream of GPU B. */
void misuse_device(const char *what, int a, int b);

/* A copy or set at ADDRESS goes beyond what is allocated there. */
void misuse_range(uint64_t address);

/* A launch that the runtime refuses, because of WHAT. */
void misuse_launch(const char *what);

/* Looks at the addresses that KERNEL is given on DEVICE: what the program has
 * freed, or another GPU's memory, ends the context. */
void misuse_arguments(const struct kernel *kernel,
                      const struct kernel_launch *launch, int device);

/* The same for one of them, in a device's memory. */
void misuse_given(const struct kernel *kernel, uint64_t address, int device);

/* How often memory was freed: something was where this has changed. */
uint32_t misuse_frees(void);

/* A graph that DEVICE runs uses ADDRESS, which was live when it was made: its
 * KERNEL is given it, or a node (NULL) reads or writes there. */
void misuse_graph(const struct kernel *kernel, uint64_t address, int device);

/* To be called where FUNCTION, an entry point, has failed. */
CORE_API void memsim_misuse_call(const char *function);

#endif
