/* SPDX-License-Identifier: Apache-2.0
 * What one process's trace gives to a Perfetto trace: its counters and its
 * modules' calls. Read once, with what is open kept and no more. */
#ifndef MEMSIM_MEMSIM_PERFETTO_TRACE_H
#define MEMSIM_MEMSIM_PERFETTO_TRACE_H

#include "common/base/err.h"
#include "common/trace/trace_read.h"
#include "memsim/report/perfetto.h"
#include "memsim/report/result.h"
#include "memsim/attribution/timeline.h"

/* Of a longer run, calls of modules are told up to so many, and so many about
 * the peak. */
#define PERFETTO_CALLS      200000
#define PERFETTO_CALLS_PEAK 50000
#define PERFETTO_PEAK_NS    UINT64_C(1000000000)

struct perfetto_process {
    struct perfetto *to;
    struct perfetto_track track; /* its threads' numbers come after this one */
    bool counters;    /* are told of this trace, not by somebody else */
    uint64_t peak_ns; /* of the trace's clock; 0: not known */
    uint64_t calls;   /* out: how many there were */
    uint64_t calls_told;
};

/* How many processes a rank may have. */
#define PERFETTO_PROCESSES 15

/* The track of the NTH process of RANK. */
struct perfetto_track perfetto_track_of(unsigned rank, unsigned nth);

/* What there is to say of RESULT beside the events; and of PROCESS of RANK, as
 * an object added to the array TOLD. ERR: why it was not read to its end. */
cJSON *perfetto_metadata(const struct result *result);
cJSON *perfetto_process_told(cJSON *told, unsigned rank,
                             const struct perfetto_process *process,
                             const struct err *err);

/* The time of the first record. Returns 0 or -1. */
int perfetto_trace_start(const char *path, uint64_t *time_ns, struct err *err);

/* Returns 0, or -1 where the trace ends in what cannot be read; what came
 * before is told then. */
int perfetto_trace_write(struct perfetto_process *process, const char *path,
                         struct err *err);

/* What a card stands at over time. Zeroed, it is empty. */
struct perfetto_card {
    struct timeline torch, used;
    uint64_t allocated_bytes, used_bytes; /* now */
};

/* ORDINAL and TIME_NS never decrease. */
void perfetto_card_allocated(struct perfetto_card *card, uint64_t ordinal,
                             uint64_t time_ns, uint64_t allocated_bytes,
                             uint64_t reserved_bytes);
void perfetto_card_used(struct perfetto_card *card, uint64_t ordinal,
                        uint64_t time_ns, uint64_t used_bytes);
/* Writes the counters of card INDEX, of which there may be none. */
void perfetto_card_write(struct perfetto_card *card, struct perfetto *to,
                         struct perfetto_track track, unsigned index);
void perfetto_card_fini(struct perfetto_card *card);

#endif
