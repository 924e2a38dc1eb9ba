/* SPDX-License-Identifier: Apache-2.0
 * A process's trace on the stream simulator: when each call and each operation
 * starts and ends on a GPU. The same trace and options give the same
 * nanoseconds.
 *
 * The host. A trace has the times of the host's calls. Between two calls the
 * host needs as long as it did when the trace was recorded (times a factor),
 * then what the driver's call costs (sim_cost.h), then what it waits. Calls of
 * several threads follow each other as they were recorded: PyTorch's threads
 * hand work to each other and seldom run at the same time. */
#ifndef MEMSIM_PLAYBACK_SIMULATION_H
#define MEMSIM_PLAYBACK_SIMULATION_H

#include "common/trace/session.h"
#include "common/trace/step.h"
#include "playback/delay.h"
#include "playback/host_times.h"
#include "playback/price.h"
#include "playback/stragglers.h"
#include "playback/world.h"

struct simulation_plan; /* of the reader of traces */
struct placement;       /* likewise: where ranks are */
struct flow_plan;       /* likewise: the flows of their collectives */

/* An operation that was simulated, with what is known of it. The names are the
 * trace's. */
struct simulation_op {
    struct sim_done done; /* tags count from 1 */
    struct price price;
    enum op_kind kind;
    uint32_t device;
    uint32_t name, module, operator;
    uint32_t phase; /* enum trace_phase_kind */
    uint32_t thread;
    uint64_t stream;      /* as the program knows it */
    uint32_t step;        /* index in the steps; SIMULATION_NO_STEP */
    uint64_t call;        /* the host call that launched it: its number */
    uint64_t bytes;       /* of a copy, set or collective */
    uint64_t capture;     /* of a graph's node: the capture that made it */
    uint64_t shape[4];    /* of its record: a launch's grid_x_y to
                             shared_bytes_rule, a copy's pinned and peer, a
                             set's value; 0 where nobody listens. Of a
                             collective: its place among all */
    uint32_t gap_ns;      /* at least, since the one before it in its stream */
    bool delay;           /* no work: the one behind it comes so much later */
    uint64_t measured_start_ns, measured_end_ns; /* of an imported profile, on
                                                    its clock; otherwise 0 */
};

/* A call of a host thread into the driver. Numbers count from 1. */
struct simulation_call {
    uint64_t number, before; /* before: the thread's last one; 0: none */
    uint64_t start_ns, end_ns;
    uint64_t woken_by; /* tag of the operation that it waited for; 0: none */
    uint64_t tag;      /* of the operation that it launched; 0: none */
    enum op_kind kind;
    uint32_t thread, step;
    uint32_t device;
    uint64_t stream, event; /* as the program knows them */
};

#define SIMULATION_NO_STEP UINT32_MAX

/* A moment of the simulation at which a step begins or ends: all that was
 * called before has completed, and the host has come there. */
struct simulation_moment {
    uint64_t ns;          /* on the last device */
    uint64_t host_ns;     /* when the host came there */
    uint64_t measured_ns; /* of an imported profile: the same as it was */
    uint64_t use_ns[SESSION_DEVICES][SIM_USES]; /* since the start */
};

/* Any may be NULL. */
struct simulation_sink {
    /* An operation is called: what its record and its kernel's name say. */
    void (*called)(void *context, uint64_t tag, const struct op *op,
                   const char *name);
    void (*op)(void *context, const struct simulation_op *op);
    void (*call)(void *context, const struct simulation_call *call);
    /* A record of the trace, and when the host comes there. */
    void (*record)(void *context, const struct trace_item *item, uint64_t ns);
    void *context;
    bool all_records; /* `record` gets the allocator's, too */
};

/* What a change of the job does to an operation. */
struct simulation_effect {
    double factor; /* of its time */
    bool overlaps; /* it runs on a stream of its own, and nothing waits for it
                      before the optimizer or, where the trace does not say
                      when that is, the end of the step */
};

/* Says it of an operation of FAMILY; NAMES are the trace's. */
struct simulation_change {
    struct simulation_effect (*effect)(void *context, const struct op *op,
                                       const struct trace_names *names,
                                       enum work_family family);
    void *context;
};

/* Of a process whose collectives wait for processes that have simulators of
 * their own (sim_others). */
struct simulation_others {
    struct sim_others sim;
    /* OP, a collective with the name NAME, is submitted to SIM: the meet that
     * it comes to, or SIM_NONE: it is alone. Sets *NEIGHBOUR as in struct
     * sim_work. */
    uint32_t (*meet)(void *context, struct sim *sim, const struct op *op,
                     const char *name, bool *neighbour);
    void *context;
};

/* What delays a process's calls. All borrowed. */
struct simulation_delays {
    const struct delays *table;
    const struct delay_ranks *ranks; /* known by the first operation */
    delay_function *library;         /* NULL: there is none */
    /* STEP begins, in which RANK dies, and so the process; NULL: not called */
    void (*died)(void *context, uint32_t rank, uint32_t step);
    void *context;
};

/* Finds where the ranks of OP, a collective with the name NAME, are. Returns
 * false where that is not known. */
struct simulation_places {
    bool (*find)(void *context, const struct op *op, const char *name,
                 struct price_place *place);
    void *context;
};

struct simulation_options {
    struct price_options price;
    double host_factor; /* of the recorded times of the host; 0: none */
    const struct simulation_plan *plan; /* NULL: made by a pass of its own */
    const struct step_list *steps; /* of the trace; NULL: a pass finds them */
    bool host_as_recorded; /* the host's times are not cleaned */
    const struct placement *placement; /* of the ranks, to such a reader; NULL:
                                          they fill nodes in order */
    const struct flow_plan *flow_plan; /* likewise; NULL: no network is known */
    uint32_t data_parallel; /* ranks that average gradients, to a reader of
                               traces; 0: as recorded */
    const char *average; /* the group of an imported profile that averages
                            them; NULL: not named; borrowed */
    const struct simulation_change *change; /* of the job; NULL: none */
    bool without_profiler; /* likewise: the host without the profiler's time */
    bool models; /* imported profiles: prices in place of what was measured */
    bool as_measured; /* likewise: collectives too, whatever the cluster */
    bool contends; /* likewise: collectives were put in, beside kernels that
                      were measured without them */
    const struct price_options *own; /* of a profile that is played on another
                                        GPU: the prices of its own; NULL: it
                                        stays where it was; borrowed */
    /* of a process among others: */
    struct simulation_world *world; /* borrowed; NULL: it is alone */
    const uint32_t *meets; /* of its collectives, in their order: a meet, or
                              SIMULATION_ALONE; borrowed */
    const struct price_place *places; /* likewise; NULL: not known */
    const struct simulation_flow *flows; /* likewise; NULL: there are none */
    const uint64_t *meet_ns; /* how long each lasts after the last one has come,
                                of an imported profile; borrowed */
    uint64_t start_ns; /* when its first record is; 0: as the world begins */
    const struct simulation_others *others; /* NULL: there are none; borrowed */
    const struct simulation_delays *delays; /* likewise */
    const struct simulation_places *finder; /* in place of `places'; likewise */
    struct stragglers stragglers; /* of the job, for a process that finds out
                                     its rank */
};

/* What is known when all of a trace was simulated. */
struct simulation {
    struct step_list steps;
    struct simulation_moment *begins, *ends; /* of each step */
    uint32_t device_count; /* those that had work: 0 to this, less one */
    uint32_t devices[SESSION_DEVICES]; /* their numbers in the process */
    uint64_t ops, end_ns;
    uint64_t host_ns; /* when the host had called the last operation */
    uint64_t measured_ns;  /* of a profile's operations that got a price ... */
    uint64_t profiler_ns; /* that the profiler took of its host's time */
    uint64_t unmodelled_ns; /* ... and the part of which little is known */
    uint64_t seen_ns; /* the same in the program's own clock; 0: not known */
    double network_users; /* of a node at a time, by the prices of collectives
                             on several nodes: the most of any; 0: none */
    bool imported; /* a profile, with measured times */
    bool stuck; /* something waits for what never comes ... */
    uint64_t stuck_place; /* ... in this collective, of its place among all;
                             SIMULATION_NO_PLACE: in none */
    uint64_t delayed[DELAYS_MAX]; /* calls, by entry of the table ... */
    uint64_t delay_ns[DELAYS_MAX]; /* ... and by how much in all */
    uint64_t library_calls; /* that the delays' library was asked about */
    uint32_t dead_rank;     /* + 1, of the table: it died ... */
    uint32_t dead_step;     /* ... as this one began; 0: none did */
};

#define SIMULATION_NO_PLACE UINT64_MAX

/* Puts records on the simulator, one after the other. *T holds the steps (none
 * where T->steps.count is 0) and room for their moments; it, TIMES (NULL: the
 * host's times are those of the records) and what OPTIONS points to are
 * borrowed. */
struct simulator *simulator_create(struct simulation *t,
                                   const struct simulation_options *options,
                                   const struct host_times *times,
                                   const struct simulation_sink *sink);
void simulator_add(struct simulator *s, const struct trace_item *item);

/* FACTOR: how many times as long this GPU's own work takes (price_options).
 * Before the first operation. */
void simulator_slow(struct simulator *s, double factor);

/* There are no more records: what was called is carried out, unless there are
 * others in its world. */
void simulator_end(struct simulator *s);

/* Of a process among others: does its host wait? Then it gets no records, and
 * does not end, before world_run. */
bool simulator_waits(struct simulator *s);
/* The world has come to its end: what of S is not done never will be. */
void simulator_conclude(struct simulator *s);
void simulator_destroy(struct simulator *s);

/* What a nanosecond of the host's is on the simulation's clock, in units of
 * 2^-SIMULATOR_FACTOR_BITS. */
#define SIMULATOR_FACTOR_BITS 32
uint64_t simulator_factor(const struct simulator *s);

/* When the host is now, on the simulation's clock; when it came to the last
 * record, whose call it has made since; how long it has waited for the GPU. */
uint64_t simulator_host_ns(const struct simulator *s);
uint64_t simulator_come_ns(const struct simulator *s);
uint64_t simulator_waited_ns(const struct simulator *s);

/* When EVENT, as it was recorded last, was reached. False: not yet, or it was
 * never recorded. Does not change what comes later. */
bool simulator_event_ns(struct simulator *s, uint64_t event, uint64_t *ns);

/* Whether EVENT was recorded, and the GPU has not come to it by the host's time
 * now. */
bool simulator_is_behind(struct simulator *s, uint64_t event);

/* When the next thing happens on a device; UINT64_MAX: nothing is known of. */
uint64_t simulator_next_ns(const struct simulator *s);
/* Does what is queued, whatever the host does meanwhile. */
void simulator_drain(struct simulator *s);
/* The next thing before LIMIT_NS happens. Returns false where nothing does. */
bool simulator_advance(struct simulator *s, uint64_t limit_ns);

/* From now on SINK (copied; NULL: nobody) is told, in place of the one before.
 * simulator_settle: of all that was done until the host's time now.
 * simulator_calls: the number of the last call. Neither changes what comes
 * later. */
void simulator_listen(struct simulator *s, const struct simulation_sink *sink);
void simulator_settle(struct simulator *s);
uint64_t simulator_calls(const struct simulator *s);

/* Gives the trace's names away, to be given to trace_names_fini. */
struct trace_names simulator_names_take(struct simulator *s);

#endif
