/* SPDX-License-Identifier: Apache-2.0
 * Collectives that use a node's network at the same time share it. */
#ifndef MEMSIM_RUNTIME_NCCL_COST_NCCL_SHARE_H
#define MEMSIM_RUNTIME_NCCL_COST_NCCL_SHARE_H

#include "runtime/nccl/cost_nccl.h"

/* Makes ANSWER, which is QUERY's time alone, its time beside the other users of
 * the network, and flags it where they slow it down. Nothing changes on one
 * node: NVSwitch gives each GPU its own links. */
void cost_nccl_share(const struct fit *fit, const struct cost_nccl_query *query,
                     struct cost_nccl_answer *answer);

#endif
