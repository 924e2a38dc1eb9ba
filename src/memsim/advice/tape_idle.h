/* SPDX-License-Identifier: Apache-2.0
 * Evaluations that record gradients which nobody uses. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_IDLE_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_IDLE_H

#include "memsim/advice/tape.h"

/* Makes *TO of FROM, with such forwards as under torch.no_grad(): an estimate,
 * for the recording does not say which module reads what. Returns how many
 * bytes are freed earlier. */
uint64_t tape_free_idle(struct tape *to, const struct tape *from);

#endif
