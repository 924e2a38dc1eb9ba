/* SPDX-License-Identifier: Apache-2.0
 * The ranks in the groups of torch.distributed. When NCCL splits a
 * communicator, its ranks exchange their colors. One process alone has only its
 * own color, but PyTorch has the list. */
#ifndef MEMSIM_CAPTURE_CORE_TORCH_PROCESS_GROUP_H
#define MEMSIM_CAPTURE_CORE_TORCH_PROCESS_GROUP_H

#include "capture/core/base/core.h"

#define GROUP_NEXT      (-2) /* no color: whatever is split next */
#define GROUP_NEXT_INIT (-3) /* a mark: what is made next, of so many ranks */

extern CORE_API const int memsim_group_next, memsim_group_next_init;

/* For py/groups.py, under Python's lock: COLOR stands for these COUNT ranks of
 * the communicator that is split; with GROUP_NEXT until it is told again, 0
 * RANKS: no longer; below that, as a mark, of the world. */
CORE_API void memsim_group_tell(int color, const uint32_t *ranks,
                                uint32_t count);

/* Those of a split with COLOR in which RANK of RANKS is the KEY-th, permanent,
 * or NULL. */
CORE_API const uint32_t *memsim_group_find(int color, uint32_t rank,
                                           uint32_t ranks, int key,
                                           uint32_t *count);

/* The RANKS ranks of the world that MARK stands for, or NULL. */
CORE_API const uint32_t *memsim_group_named(int mark, uint32_t ranks);

#endif
