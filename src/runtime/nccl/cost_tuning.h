/* SPDX-License-Identifier: Apache-2.0
 * NCCL's own cost model: for each algorithm and protocol a latency and a
 * bandwidth. NCCL takes the pair with the least time; so do we where no table
 * has the answer. Source: NVIDIA/nccl src/graph/tuning.cc (2.27 to 2.30),
 * ncclTopoTuneModel and ncclTunerConstantsDefaults; src/graph/topo.h for the
 * rates of NVLink. */
#ifndef MEMSIM_RUNTIME_NCCL_COST_TUNING_H
#define MEMSIM_RUNTIME_NCCL_COST_TUNING_H

#include "runtime/nccl/fit.h"

enum cost_algo {
    COST_ALGO_AUTO, /* the least time, as NCCL chooses */
    COST_ALGO_RING,
    COST_ALGO_TREE,
    COST_ALGO_NVLS,
    COST_ALGO_NVLS_TREE,
    COST_ALGO_PAT,
    COST_ALGO_COUNT,
};

/* One collective on one machine. Bandwidths are bus bandwidths, in 1e9 bytes a
 * second: inside a node, and of a node's network for so many of its GPUs. */
struct cost_tuning {
    enum fit_coll coll;
    double bytes;
    double nodes, gpus; /* at least 1 */
    double intra_gbps, inter_gbps;
    bool nvls; /* NVSwitch that reduces: H100 and later, 4 GPUs and more */
};

/* Microseconds of T with ALGO and its best protocol. Returns a negative number
 * where NCCL does not have ALGO for T, or the collective is not one that NCCL
 * tunes (all-to-all, send/recv, gather, scatter). */
double cost_tuning_us(const struct cost_tuning *t, enum cost_algo algo);

/* The latency that is left at 0 bytes: of the best algorithm and protocol. */
double cost_tuning_latency_us(enum fit_coll coll, double nodes, double gpus);

/* The algorithm called NAME, as "ring"; COST_ALGO_COUNT: none is. */
enum cost_algo cost_algo_find(const char *name);

#endif
