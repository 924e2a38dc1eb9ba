/* SPDX-License-Identifier: Apache-2.0
 * A recording as it would have been with zero_grad(set_to_none=True). */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_GRADIENT_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_GRADIENT_H

#include "memsim/advice/tape.h"

/* Makes *TO a copy of FROM in which gradients that are set to zero are freed
 * there. The next backward's result for the parameter, which was added to the
 * gradient and freed, is the gradient then. Returns the bytes freed by the
 * step that frees most; 0: no gradient is set to zero. */
uint64_t tape_free_gradients(struct tape *to, const struct tape *from);

#endif
