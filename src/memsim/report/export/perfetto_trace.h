/* SPDX-License-Identifier: Apache-2.0
 * What one process's trace gives to a Perfetto trace: its counters and its
 * modules' calls. */
#ifndef MEMSIM_MEMSIM_REPORT_EXPORT_PERFETTO_TRACE_H
#define MEMSIM_MEMSIM_REPORT_EXPORT_PERFETTO_TRACE_H

#include "common/base/err.h"
#include "common/trace/play.h"
#include "memsim/report/export/perfetto.h"
#include "memsim/result/result.h"
#include "memsim/attribution/memory_curve.h"

/* Of a longer run, calls of modules are told up to so many, and so many about
 * the peak. */
#define PERFETTO_CALLS      200000
#define PERFETTO_CALLS_PEAK 50000
#define PERFETTO_PEAK_NS    UINT64_C(1000000000)

/* What is kept of a trace while it is read: all that is told in the end, and
 * calls that would be, should the peak turn out to be near them. */
struct perfetto_log;

/* PEAK_CARD: the GPU, by the session's number, about whose peak calls are
 * kept; PERFETTO_NO_PEAK: none's. */
struct perfetto_log *perfetto_log_create(unsigned peak_card);
void perfetto_log_destroy(struct perfetto_log *log); /* NULL is fine */
struct trace_listener perfetto_log_listener(struct perfetto_log *log);

#define PERFETTO_NO_PEAK UINT32_MAX

/* The time of its first record; 0: it had none. */
uint64_t perfetto_log_start(const struct perfetto_log *log);

struct perfetto_process {
    struct perfetto *to;
    struct perfetto_track track; /* its threads' numbers come after this one */
    bool counters;  /* are told of this trace, not by somebody else */
    uint64_t calls; /* out: how many there were */
    uint64_t calls_told;
};

/* Writes LOG, which ends where reading did. */
void perfetto_log_write(struct perfetto_log *log,
                        struct perfetto_process *process);

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

/* Reads the trace PATH. Returns its log; where it ends in what cannot be read,
 * ERR is set, and the log has what came before. */
struct perfetto_log *perfetto_trace_read(const char *path, unsigned peak_card,
                                         struct err *err);

/* What a GPU stands at over time. Zeroed, it is empty. */
struct perfetto_card {
    struct memory_curve torch, used;
    uint64_t allocated_bytes, used_bytes; /* now */
};

/* ORDINAL and TIME_NS never decrease. */
void perfetto_card_allocated(struct perfetto_card *card, uint64_t ordinal,
                             uint64_t time_ns, uint64_t allocated_bytes,
                             uint64_t reserved_bytes);
void perfetto_card_used(struct perfetto_card *card, uint64_t ordinal,
                        uint64_t time_ns, uint64_t used_bytes);
/* Writes the counters of GPU INDEX, of which there may be none. */
void perfetto_card_write(struct perfetto_card *card, struct perfetto *to,
                         struct perfetto_track track, unsigned index);
void perfetto_card_fini(struct perfetto_card *card);

#endif
