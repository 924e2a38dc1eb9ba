/* SPDX-License-Identifier: Apache-2.0
 * The phases of a program as they are carried out. What a stream capture
 * records is carried out by each launch of its graph. */
#ifndef MEMSIM_COMMON_TRACE_STEP_PHASES_H
#define MEMSIM_COMMON_TRACE_STEP_PHASES_H

#include "common/trace/step_batch.h"
#include "common/trace/trace_read.h"

/* Zeroed: at the start of a trace. */
struct step_phases {
    struct step_captured *captured;
    size_t count, capacity;
    bool capturing; /* into the last of them: nothing is carried out */
};

/* What one record carries out: its phases, in their order. */
struct step_carried {
    uint64_t phases[3];
    unsigned count;
    const struct step_batch *batch; /* of a graph; NULL: none */
    bool calls;                     /* modules were called */
};

/* Takes the next record of a trace, of any kind. */
struct step_carried step_phases_take(struct step_phases *p,
                                     const struct trace_item *item);
void step_phases_fini(struct step_phases *p);

#endif
