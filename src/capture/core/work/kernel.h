/* SPDX-License-Identifier: Apache-2.0
 * Kernels: thousands are registered when a library loads; a kernel's name is
 * parsed at its first launch. */
#ifndef MEMSIM_CAPTURE_CORE_WORK_KERNEL_H
#define MEMSIM_CAPTURE_CORE_WORK_KERNEL_H

#include <stdbool.h>

#include "capture/core/base/core.h"
#include "capture/core/base/launch.h"
#include "common/trace/trace.h"

/* Says that HOST stands for the kernel NAME, which must stay where it is. IMAGE
 * has its code (fatbin.h); NULL: not known. */
CORE_API void memsim_kernel_register(const void *host, const char *name,
                                     const void *image);

/* The kernel that HOST stands for; NULL where none was registered. */
CORE_API struct kernel *memsim_kernel_get(const void *host);

/* The kernel that HANDLE is: the runtime's, or the driver's function, whose
 * first member it is; NULL where it is neither. */
CORE_API struct kernel *memsim_kernel_of_handle(const void *handle);

/* A kernel known by its name alone: from a module or a library. FOREIGN: it may
 * write what PyTorch's own kernels would not. */
CORE_API struct kernel *memsim_kernel_named(const char *name, bool foreign);

/* KERNEL has COUNT parameters of BYTES each, which are copied: where no rule
 * says more, a launch counts the blocks that they point into. */
CORE_API void memsim_kernel_parameters(struct kernel *kernel,
                                       const uint16_t *bytes, uint32_t count);

/* The next kernel of that NAME that this thread loads stores to what the
 * arguments of WRITTEN, bit by bit, point to, and to nothing else. */
CORE_API void memsim_kernel_stores(const char *name, uint64_t written);

/* And it reaches through its first COUNT arguments what REACHES says. */
CORE_API void memsim_kernel_reaches(const struct kernel_reach *reaches,
                                    uint32_t count);

/* The next kernel of that NAME that this thread loads has PARAMETERS, the text
 * between the brackets in the source that it is compiled from. Neither need end
 * with a NUL. */
CORE_API void memsim_kernel_declare(const char *name, size_t name_length,
                                    const char *parameters, size_t length);

/* Those of the kernel NAME while it is loaded; NULL where it was not told. */
const char *kernel_declared(const char *name);

/* Lets launches of KERNEL, of the runtime's, ask for BYTES of dynamic shared
 * memory. CORE_INVALID_VALUE where a block cannot have so many. */
CORE_API int memsim_kernel_allow_shared(struct kernel *kernel, int64_t bytes);

/* Whether LAUNCH can be a cooperative one, all of whose blocks run at once:
 * CORE_OK where nothing says otherwise. */
CORE_API int memsim_kernel_cooperative(const struct kernel_launch *launch);

/* Records a launch, with the checks that the runtime makes. */
CORE_API int memsim_kernel_launch(const struct kernel *kernel,
                                  const struct kernel_launch *launch);

/* Counts work given to DEVICE, whoever records it: the sign that a program
 * went on after an OOM. */
CORE_API void memsim_kernel_count(int device);

/* For reset.c: DEVICE has no kernels loaded any more. */
void kernel_reset(int device);

/* kernel_pointers.c: bit i: argument i of a mangled NAME is an address; what is
 * there may be WRITTEN. */
struct kernel_pointers {
    uint32_t all, written;
};

struct kernel_pointers kernel_pointers(const char *name, bool with_templates);

/* kernel_rules.c: sets what of KERNEL's arguments is recorded, by WORK, what
 * its name says; and reads it from LAUNCH: the rule's number and its words. */
void kernel_rule_choose(struct kernel *kernel, const struct work_kernel *work);
void kernel_rule_blocks(struct kernel *kernel); /* where there is no other */
enum trace_rule kernel_rule_apply(const struct kernel *kernel,
                                  const struct kernel_launch *launch,
                                  uint64_t words[TRACE_LAUNCH_WORDS]);

/* kernel_loops.c: what the arguments of PyTorch's loops over elements say.
 * Words as the rules of trace.h say; false where the argument is not as
 * expected. */
bool kernel_strided_read(const struct kernel_launch *launch, uint32_t tensors,
                         uint64_t words[TRACE_LAUNCH_WORDS]);
bool kernel_reduction_read(const struct kernel_launch *launch,
                           uint64_t words[TRACE_LAUNCH_WORDS]);

/* kernel_blocks.c: for unknown kernels: marks every block that they may write
 * as unknown. Where it is not known which those are, what came from the host as
 * it is stays. */
void kernel_blocks_write(const struct kernel *kernel,
                         const struct kernel_launch *launch);
/* The same, as steps of a graph: only where it is known. */
struct graph_steps;
void kernel_blocks_step(struct graph_steps *steps, const struct kernel *kernel,
                        const struct kernel_launch *launch);

/* kernel_blocks.c: words as TRACE_RULE_BLOCKS says. */
bool kernel_blocks_read(const struct kernel *kernel,
                        const struct kernel_launch *launch,
                        uint64_t words[TRACE_LAUNCH_WORDS]);

/* kernel_attention.c: likewise, words as TRACE_RULE_ATTENTION says. */
bool kernel_flash_read(const struct kernel_launch *launch,
                       uint64_t words[TRACE_LAUNCH_WORDS]);
bool kernel_efficient_forward_read(const struct kernel_launch *launch,
                                   uint64_t words[TRACE_LAUNCH_WORDS]);
bool kernel_efficient_backward_read(const struct kernel_launch *launch,
                                    uint64_t words[TRACE_LAUNCH_WORDS]);

#endif
