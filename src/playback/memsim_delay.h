/* SPDX-License-Identifier: Apache-2.0
 * Delays that `memsim --delay' cannot say, as a shared object:
 *
 *     #include <memsim_delay.h>
 *     const unsigned memsim_delay_version = MEMSIM_DELAY_VERSION;
 *     uint64_t memsim_delay(const struct memsim_delay_call *call)
 *     {
 *         return call->ranks > 1 && call->number % 100 == 99 ? 2000000 : 0;
 *     }
 *
 *     cc -shared -fPIC -o late.so late.c
 *     memsim run --delay-lib ./late.so -- python train.py
 *
 * memsim loads it into itself and into each process of the job, and asks it
 * for each operation of a GPU, in the order of the calls: for the rank that
 * runs, and for each one that this rank stands for. The largest answer counts.
 * The report and the program's clock agree if equal calls get equal answers:
 * use no clock and no state, and of randomness a hash of what the call says. It
 * must not call CUDA.
 */
#ifndef MEMSIM_PLAYBACK_MEMSIM_DELAY_H
#define MEMSIM_PLAYBACK_MEMSIM_DELAY_H

#include <stdint.h>

#define MEMSIM_DELAY_VERSION 1

struct memsim_delay_call {
    uint32_t size; /* of this structure; later versions add at the end */
    uint32_t rank; /* that makes the call */
    uint32_t node; /* of that rank */
    uint32_t step; /* from 0 */
    uint64_t number; /* among the calls of a rank, from 0; the same for all
                        ranks that one process stands for */
    const char *name; /* "ncclAllReduce", a kernel's mangled name */
    uint32_t ranks;  /* of a collective, sends and receives; 0: it is none */
    uint32_t between_nodes; /* of such: 1 if it leaves a node */
    uint64_t bytes;         /* likewise */
    uint64_t duration_ns;   /* the predicted one, without delays */
};

/* By how many nanoseconds CALL is to start later than it could. */
uint64_t memsim_delay(const struct memsim_delay_call *call);
extern const unsigned memsim_delay_version;

#endif
