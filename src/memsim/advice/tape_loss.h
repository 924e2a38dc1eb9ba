/* SPDX-License-Identifier: Apache-2.0
 * A recording as it would have been had the logits been made in parts. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_LOSS_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_LOSS_H

#include "memsim/advice/tape.h"

/* Makes *TO a copy of FROM in which what has the dimensions of a loss's logits
 * takes one part in CHUNKS: the last layer and the loss are computed for so
 * many parts of the batch, one after another, and again in backward. Returns by
 * how many bytes these blocks are smaller, all in all; 0: there is no such
 * loss. */
uint64_t tape_chunk_loss(struct tape *to, const struct tape *from,
                         unsigned chunks);

#endif
