/* SPDX-License-Identifier: Apache-2.0
 * A recording as it would have been with another optimizer. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_STATE_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_STATE_H

#include "memsim/advice/tape.h"

struct state_change {
    bool bf16;  /* what it keeps in fp32 is kept in bf16 */
    bool int8;  /* ... in 8 bits, as bitsandbytes and torchao do: states of 4096
                   elements and more, with a scale for each 256 */
    bool fused; /* fused=True: no temporaries of whole lists of parameters */
    unsigned shards; /* each of so many ranks keeps its part of each state; 0 or
                        1: no change */
};

struct state_effect {
    uint64_t state_bytes; /* that the optimizer keeps no more */
    uint64_t step_bytes;  /* that its steps take no more, all in all */
};

/* Makes *TO a copy of FROM with CHANGE. */
struct state_effect tape_change_states(struct tape *to, const struct tape *from,
                                       const struct state_change *change);

#endif
