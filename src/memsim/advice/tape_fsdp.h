/* SPDX-License-Identifier: Apache-2.0
 * A recording as it would have been under FSDP. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_FSDP_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_FSDP_H

#include "memsim/advice/module_list.h"
#include "memsim/advice/tape.h"

/* Makes *TO a copy of FROM as one of RANKS would have it with
 * torch.distributed.fsdp.fully_shard on each member of LISTS and on the model,
 * which is made on the meta device: the parameters, gradients and optimizer
 * states take their part; a member's parameters are gathered for its forward
 * and its backward, and its gradients are scattered after it. Returns the bytes
 * of parameters that others keep; 0: there are none, or FROM is sharded. */
uint64_t tape_shard_all(struct tape *to, const struct tape *from,
                        const struct module_lists *lists, unsigned ranks);

/* Whether FullyShardedDataParallel or fully_shard made any of TAPE's blocks. */
bool tape_is_sharded(const struct tape *tape);

#endif
