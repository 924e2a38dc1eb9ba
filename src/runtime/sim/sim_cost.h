/* SPDX-License-Identifier: Apache-2.0
 * What the real driver's calls and queues cost, which no price of an operation
 * covers. Constants, each with its source; doc/time.md has the table. */
#ifndef MEMSIM_RUNTIME_SIM_SIM_COST_H
#define MEMSIM_RUNTIME_SIM_SIM_COST_H

#include <stdint.h>

#include "common/trace/op.h"
#include "runtime/sim/sim.h"

/* Time of the host in a driver call of KIND, its waits left out. */
uint64_t sim_call_ns(enum op_kind kind);

/* One of the constants above; NULL behind the last. */
struct sim_constant {
    const char *what;
    uint64_t value;
    const char *unit, *source;
};
const struct sim_constant *sim_constant(unsigned index);

/* A kernel's launch, and other calls that submit work: of the host. */
#define SIM_LAUNCH_NS 4000

/* Between two operations of one stream. */
#define SIM_GAP_NS 1000

/* Operations of one stream before a launch blocks. */
#define SIM_QUEUE_DEPTH 1024

/* A host function on a stream: from the operation before it to the next. */
#define SIM_HOST_FUNCTION_NS 10000

/* What of a GPU with SM_COUNT multiprocessors a collective of CHANNELS thread
 * blocks takes from compute, and what a copy over COPY_GBPS of a memory of
 * MEMORY_GBPS does. */
void sim_gpu_set(struct sim_gpu *gpu, uint32_t sm_count, uint32_t channels,
                 double copy_gbps, double memory_gbps);

#endif
