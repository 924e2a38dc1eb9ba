/* SPDX-License-Identifier: Apache-2.0
 * What cuDNN's recurrent networks cost, from the prices of what they are made
 * of. Pure. */
#ifndef MEMSIM_RUNTIME_COST_COST_RECURRENT_H
#define MEMSIM_RUNTIME_COST_COST_RECURRENT_H

#include "runtime/cost/cost_image.h"

/* Prices WORK, which is_recurrent: for each layer and direction one product of
 * the inputs of all steps; then, step after step, a product with the state and
 * the gates' arithmetic, two kernels that the host must launch, too. The basis
 * is that of its least sure part, COST_BORROWED at best. */
void cost_recurrent_price(const struct cost_image *image,
                          const struct cost_gpu *gpu, const struct work *work,
                          struct cost_answer *answer);

#endif
