/* SPDX-License-Identifier: Apache-2.0
 * What an operation takes on a GPU that was measured on another one: its time
 * there, times the ratio of the prices on both. Where the shape is not known,
 * times the ratio of what the family of operations is bound by.
 *
 * Two GPUs' models are fitted to other measurements: the ratio of their prices
 * has the errors of both. No kernel changes by more than what it can be bound
 * by: memory, arithmetic, the clock, or nothing of these. */
#ifndef MEMSIM_PLAYBACK_PRICE_MOVE_H
#define MEMSIM_PLAYBACK_PRICE_MOVE_H

#include "playback/price.h"

struct price_move {
    struct pricer *own;      /* of the GPU that was measured; NULL: none */
    struct cost_gpu from, to;
    double memory, products; /* how much slower the other one is at most */
    double call_ratio, call_band; /* of the last call whose shape is known; its
                                     further kernels have them, too */
};

/* From the GPU of OWN to that of THERE; both are borrowed. */
void price_move_init(struct price_move *m, const struct price_options *own,
                     const struct price_options *there);
void price_move_fini(struct price_move *m);

/* The time of OP, which took MEASURED_NS and has the price THERE. */
struct cost_answer price_move(struct price_move *m, const struct op *op,
                              const struct trace_names *names,
                              const struct price *there, uint64_t measured_ns);

#endif
