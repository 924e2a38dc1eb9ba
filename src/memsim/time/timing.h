/* SPDX-License-Identifier: Apache-2.0
 * How long a process's steps take, and on what: made from its trace on the
 * stream simulator. Pure but for the reading of the trace. */
#ifndef MEMSIM_MEMSIM_TIME_TIMING_H
#define MEMSIM_MEMSIM_TIME_TIMING_H

#include "memsim/time/simulation_job.h"
#include "memsim/time/simulation_read.h"
#include "memsim/time/spans.h"

/* The operator of what is no operation: a pause of a stream that an imported
 * profile does not explain, kept as measured. */
#define TIMING_PAUSE "not in the profile"

/* Where a step's time went on the device that computed most. The parts from
 * compute_ns to other_ns add up to duration_ns, but for the overlapped one,
 * which is a part of compute_ns. peers_ns is a part of exposed_comm_ns: waits
 * for the other ranks of a collective. */
struct timing_step {
    uint64_t duration_ns;
    uint64_t low_ns, high_ns; /* the band: see doc/time.md */
    uint64_t compute_ns, exposed_comm_ns, overlapped_comm_ns;
    uint64_t exposed_copy_ns, host_bound_ns, other_ns;
    uint64_t bubble_ns; /* waits for a neighbour in a pipeline */
    uint64_t peers_ns;
    uint64_t link_bytes[SIM_LINKS]; /* sent by collectives, without protocol */
    uint64_t measured_ns; /* of an imported profile; 0: not known */
    struct span_parts measured; /* the parts of that */
    /* Share of the SMs that had work, by the grids of the kernels; -1: not
     * known. The error is the mean difference of 1 ms windows from the
     * profile's. */
    double sm_utilization, measured_sm_utilization, sm_utilization_error;
    bool warm_up;
    uint32_t calls; /* of modules, by STEP_REPEAT; else 0 */
    struct step_input input; /* what it works on */
};

/* Share of the SMs that had work in windows of a step. */
struct timing_utilization {
    uint64_t window_ns;
    double *windows, *measured; /* COUNT; measured: NULL where not known */
    double *busy, *measured_busy; /* likewise: in which a stream is busy */
    size_t count;
};
#define TIMING_WINDOW_NS   1000000
#define TIMING_WINDOWS_MAX 10000 /* of a longer step, windows are longer */

/* Device time of one step, on average over the steps that are no warm-up. */
struct timing_row {
    char *name;
    double ns;
    double calls; /* operations */
    double forward_ns; /* of NS, in forward; of modules alone */
};

struct timing {
    enum step_rule rule;
    struct timing_step *steps;
    size_t step_count;
    size_t typical; /* the step of the median duration, warm-up left out */
    double basis[COST_BASES]; /* shares of the device time; sum 1, or all 0 */
    double unmodelled;        /* of a profile with the models' prices: the share
                                 of its measured device time of which little is
                                 known */
    double unknown;           /* share of the operations of a step of which
                                 little is known: their time is a guess */
    struct timing_utilization utilization; /* of the typical step */
    double mfu; /* arithmetic of a step over what the peak allows; 0: none */
    double device_ns;         /* of a step: all operations added up */
    uint64_t ops;             /* of the whole trace */
    uint64_t end_ns;          /* when the last of them ends */
    uint64_t host_ns; /* when the host had called the last of them ... */
    uint64_t seen_ns; /* ... by the program's own clock; 0: not known */
    double job_tokens; /* a second, as a report has it; 0: not known */
    char *input_module; /* name of the typical step's input.module; or NULL */
    double network_users; /* of a node at a time, as struct simulation has it */
    struct timing_row *modules; /* with what lies below each; longest first */
    size_t module_count;
    struct timing_row *operators;
    size_t operator_count;
    struct timing_row *path; /* the critical path of the last step, by what
                                is on it */
    size_t path_count;
    uint64_t keeps_up_ns; /* the step's time where the host takes none, of the
                             job's slowest rank then; 0: not known */
    size_t host_steps;    /* whose host's times are used: see host_times; 0: of
                             each step its own */
    double host_spread;   /* likewise */
    struct host_busy host_busy; /* likewise */
    bool imported; /* a profile: the host is the profiled one */
    bool stuck; /* as struct simulation has it */
    uint64_t stuck_place;
    uint64_t delayed[DELAYS_MAX]; /* likewise, and so on */
    uint64_t delay_ns[DELAYS_MAX];
    uint64_t library_calls;
    uint32_t dead_rank, dead_step;
};

/* The most rows that a list holds. */
#define TIMING_ROWS 2000

/* Reads and simulates the trace PATH. Returns 0 with *T to be given to
 * timing_fini, or -1 with ERR set and nothing to free. */
int timing_read(struct timing *t, const char *path,
                const struct simulation_options *options, struct err *err);
/* A rank of a job. */
struct timing_rank {
    struct timing timing; /* to be given to timing_fini */
    bool failed;          /* the trace cannot be read */
    struct err err;       /* why */
};

/* Reads and simulates the traces of the ranks of PEERS together: their
 * collectives wait for each other. RANKS gets the timing of each. */
void timing_read_job(struct timing_rank *ranks,
                     const struct simulation_peers *peers,
                     const struct simulation_options *options);

void timing_fini(struct timing *t);
void timing_destroy(struct timing *t); /* frees it, too; NULL is fine */

/* Whether the step's time depends on a host whose own times are not firm: they
 * are of few steps, or of steps that differ, or were taken on a busy machine.
 */
bool timing_is_unsure(const struct timing *t);

/* Whether this machine's CPUs were so busy that other processes may have made
 * all of the steps slower. */
bool timing_is_busy(const struct timing *t);

/* So many steps make them firm, where these are alike: twelve of a job, whose
 * first ones are its warm-up. */
#define TIMING_FIRM_STEPS  8
#define TIMING_FIRM_SPREAD 0.2
#define TIMING_FIRM_WAITED 0.05
#define TIMING_FIRM_OTHERS 0.25

/* The step's time that stands for the run; 0: there is no step. */
uint64_t timing_step_ns(const struct timing *t);

#endif
