/* SPDX-License-Identifier: Apache-2.0
 * How far an answer may be off. */
#ifndef MEMSIM_RUNTIME_NCCL_COST_NCCL_BAND_H
#define MEMSIM_RUNTIME_NCCL_COST_NCCL_BAND_H

#include "runtime/nccl/cost_nccl.h"

/* Sets the error and the band of ANSWER, which FAMILY (NULL: no curves) gave to
 * QUERY with the flags that it holds. */
void cost_nccl_band(const struct fit_family *family,
                    const struct cost_nccl_query *query,
                    struct cost_nccl_answer *answer);

#endif
