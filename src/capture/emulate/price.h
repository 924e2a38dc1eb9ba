/* SPDX-License-Identifier: Apache-2.0
 * How long a collective lasts once all its ranks have come: by the same models
 * that `memsim run' has. */
#ifndef MEMSIM_CAPTURE_EMULATE_PRICE_H
#define MEMSIM_CAPTURE_EMULATE_PRICE_H

#include <stdbool.h>

#include "capture/emulate/delays.h"
#include "capture/nccl/gpu.h"

struct emulated_price {
    uint64_t ns;
    uint64_t nodes; /* 1: it stays within a node */
    double lag;     /* kernel.h's */
};

/* False, with *P zero, where there are no models: a note says so. */
bool emulated_price(const struct communicator *c, const struct nccl_call *call,
                    struct emulated_price *p);

/* What --delay does as STEP begins. */
void emulated_price_step(uint32_t step, struct emulated_step *s);

/* What --delay does to the next work under NAME, a kernel or a library's call.
 */
struct delay_effect emulated_price_work(const char *name);

#endif
