/* SPDX-License-Identifier: Apache-2.0
 * Reads each trace of a run once and passes it to every analysis. */
#ifndef MEMSIM_MEMSIM_STUDY_TRACES_H
#define MEMSIM_MEMSIM_STUDY_TRACES_H

#include "common/trace/trace_read.h"
#include "memsim/advice/recorded.h"
#include "memsim/result/result.h"
#include "memsim/run/run.h"
#include "memsim/run/rundir.h"
#include "memsim/time/simulation_plan.h"

/* Gets the progress of reading a trace. */
struct study_progress {
    void (*tell)(const struct trace_reader *reader, void *context);
    void (*end)(void *context); /* all of that trace is read */
    void *context;
};

struct traces_wanted {
    const char *cluster;   /* to price collectives on; NULL: not asked for */
    double quantile;       /* of their times; 0: the mean */
    const char *placement; /* NULL: ranks fill nodes */
    bool events;           /* result->events, for --perfetto */
    enum simulation_keep keep; /* traces_plan, for the simulator */
    bool recorded;             /* traces.recorded, of all that are shown */
    uint64_t recorded_most;    /* ... or of traces of up to so many bytes */
    int64_t recorded_process;  /* ... or of this one; -1: none */
    const struct study_progress *progress; /* NULL: nobody is told */
};

/* What the traces say that is not a part of the result. */
struct traces {
    struct recorded_list recorded; /* where it is not too much for memory */
    struct traces_plan {
        uint32_t process;
        struct simulation_plan plan;
    } * *plans;
    size_t plan_count;
};

/* Fills *RESULT, which result_init made of DIR's session, and *TRACES with what
 * the traces of DIR say. What cannot be read becomes a note. Returns 0, or -1
 * where there is no such cluster, or the directory cannot be read; *TRACES is
 * to be given to traces_fini in both cases. */
int traces_read(struct result *result, struct traces *traces,
                const struct rundir *dir, const struct traces_wanted *wanted,
                struct err *err);
void traces_fini(struct traces *traces);

/* What the simulator must know of PROCESS; NULL: it is not known. */
const struct simulation_plan *traces_plan(const struct traces *traces,
                                          uint32_t process);

/* Prices what the traces of RUN tell of, as WANTED says, and nothing else. */
int traces_price(struct result *result, const struct run *run,
                 const struct traces_wanted *wanted, struct err *err);

#endif
