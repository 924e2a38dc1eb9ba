/* SPDX-License-Identifier: Apache-2.0
 * Blocks that outlive their step, and where in the program's Python more of
 * their kind are asked for. A kind is an operator in a module. From the third
 * round on, a kind of which more blocks are alive than ever when a round begins
 * is watched for some rounds: the stacks of its blocks are wanted. A round
 * begins with the call of an outermost module, or of --step-mark's function. It
 * is a step, or a part of one. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_KEPT_H
#define MEMSIM_CAPTURE_CORE_TORCH_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/torch/tag.h"

/* Also records how much memory tensors on the host have, where that changed,
 * and the C library's heap, when it was looked at (look_pace.h). */
void kept_round(void);

/* Steps begin by another rule than until now: by an optimizer, or a mark. What
 * was before does not show whether the heap grows. Only the first call of each
 * counts. */
enum kept_rule {
    KEPT_OPTIMIZER,
    KEPT_MARK,
    KEPT_RULES,
};
void kept_restart(enum kept_rule rule);

/* A block that TAG asked for is handed out, or taken back. */
void kept_add(uint64_t address, uint64_t bytes, const struct tag *tag);
void kept_remove(uint64_t address);

/* Whether the stack of what this thread asks for is wanted. */
bool kept_wanted(void);

#endif
