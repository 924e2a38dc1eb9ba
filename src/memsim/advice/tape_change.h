/* SPDX-License-Identifier: Apache-2.0
 * A recording as it would have been, had the program been another one. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_CHANGE_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_CHANGE_H

#include "memsim/advice/module_list.h"
#include "memsim/advice/tape.h"

/* Makes *TO a copy of FROM in which the members of the lists that are CHOSEN,
 * an array as LISTS->rows, are under activation checkpointing, as
 * torch.utils.checkpoint(member, ..., use_reentrant=False) would have it: what
 * a member's forward takes and backward frees is freed when the member is left,
 * but for its results; before the first of it is needed, the member's calls are
 * made again, up to the last block that backward needs. What autocast keeps
 * for later (copies of weights) it keeps until it would. Returns how many
 * forwards that concerned. */
size_t tape_checkpoint(struct tape *to, const struct tape *from,
                       const struct module_lists *lists, const bool *chosen);

/* Are members of the list numbered LIST (from 0) checkpointed in TAPE
 * already? */
bool tape_is_checkpointed(const struct tape *tape,
                          const struct module_lists *lists, size_t list);

#endif
