/* SPDX-License-Identifier: Apache-2.0
 * One process on the stream simulator, for the files that make it: numbers of
 * what it names (simulator_numbers.c), its host's time (simulator_host.c), the
 * device's work (simulator_work.c), calls (simulator_calls.c), and what others
 * see of it (simulation.c). */
#ifndef MEMSIM_PLAYBACK_SIMULATOR_H
#define MEMSIM_PLAYBACK_SIMULATOR_H

#include "common/base/map.h"
#include "common/trace/step.h"
#include "playback/price_move.h"
#include "playback/simulation.h"

#define PROFILE_THREADS 1024 /* more share the last one's clock */

struct simulator {
    struct simulation *t;
    struct simulation_options options;
    struct simulation_sink sink;
    struct op_trace *ops;
    struct pricer *pricer;
    struct price_move move; /* from a profile's own GPU */
    struct simulation_world *world;
    struct sim *sim; /* the world's */
    struct map streams, events; /* numbers + 1 */
    struct map threads;
    uint32_t devices[SESSION_DEVICES]; /* numbers; SIM_NONE */
    uint32_t numbers[SESSION_DEVICES]; /* the same as they came */
    struct simulation_op *infos;         /* by tag, a ring */
    size_t info_capacity;
    uint64_t tag, call; /* the last given */
    uint64_t collective; /* the next one's place among all */
    uint64_t priced;     /* the same when it gets its price */
    uint64_t under_way;  /* operations that are not done */
    /* of a process among others: the call that its host has not done with,
     * and those of the same record that come after it */
    struct unfinished {
        bool active;
        bool blocking;       /* it still waits for its own work */
        const struct op *op; /* the call's, or &kept once that has returned */
        struct op kept;      /* without what it borrows */
        uint32_t thread, stream;
        uint64_t start_ns, called_ns, first_tag;
    } unfinished;
    struct waiting {
        struct op op;
        struct price price;
        bool works;
        uint64_t fields[TRACE_FIELDS_MAX];
    } *queue;
    size_t queue_head, queue_count, queue_capacity;
    bool ended, concluded;
    uint64_t *last_calls; /* numbers by thread */
    uint32_t last_capacity;
    uint32_t thread_named, thread_number; /* the last one of `threads` */
    uint64_t stream_key;                  /* likewise, of `streams` */
    uint32_t stream_number;               /* SIM_NONE: none */
    struct map beside; /* streams of what a change lets overlap, by stream */
    bool is_beside;    /* something runs on them that nothing waited for yet */
    uint64_t record;    /* its ordinal in the trace */
    bool begun;         /* there was a record */
    uint64_t record_ns; /* the time of the last one, on the trace's clock */
    uint64_t host_ns;   /* on the simulation's */
    uint64_t come_ns;   /* the same, before what the last record's call took */
    uint64_t waited_ns; /* for the GPU */
    uint64_t factor, lost_ns; /* of the host's times, and what is left of a
                                 nanosecond; in units of 2^-32 */
    const struct host_times *times;
    uint32_t last_stream;    /* that work was submitted to, */
    uint64_t last_stream_ns; /* which takes so long */
    size_t calls; /* of this step so far */
    uint32_t step;      /* that runs, or comes next */
    bool in_step;
    struct delay_state delay;   /* delays NULL: there are none */
    struct step_tracker marked; /* the steps, for those that depend on them */
    bool marks;                 /* some do */
    uint32_t delay_step;        /* the last that began, + 1 */
    bool dead;                  /* it does nothing any more */
    /* of an imported profile */
    bool imported;
    uint64_t origin_ns;       /* its first record */
    uint64_t measured_end_ns; /* the last end of what was called so far */
    int64_t drifts[PROFILE_THREADS]; /* of threads: simulated less measured */
    uint64_t came[PROFILE_THREADS]; /* when each was last known to do something,
                                       on the profile's clock; 0: never */
};

/* --- numbers --------------------------------------------------------------
 *
 * What the trace names, as the simulator knows it: made when first met. */

uint32_t simulator_device(struct simulator *r, uint32_t device);
uint32_t simulator_thread(struct simulator *r, uint32_t thread);
uint32_t simulator_event(struct simulator *r, uint64_t event);
uint32_t simulator_stream(struct simulator *r, const struct op *op);

/* OP creates a stream, or destroys one. */
void simulator_stream_create(struct simulator *r, const struct op *op);
void simulator_stream_destroy(struct simulator *r, const struct op *op);

/* OP's stream in r->streams. */
uint64_t simulator_stream_key(const struct op *op);

/* The number that MAP has for KEY; SIM_NONE: none. */
uint32_t simulator_number(const struct map *map, uint64_t key);
void simulator_number_put(struct map *map, uint64_t key, uint32_t number);

/* --- the host ------------------------------------------------------------- */

/* The host works for NS of this machine's. */
void simulator_host_work(struct simulator *r, uint64_t ns);

/* The host comes to a record of TIME_NS, and to the call OP. */
void simulator_host_record(struct simulator *r, uint64_t time_ns);
void simulator_host_call(struct simulator *r, const struct op *op);

/* THREAD has made a call; where it has to wait, it does. Returns false where
 * that is left to the world. */
bool simulator_host_settle(struct simulator *r, uint32_t thread);

/* When THREAD does what it did at TIME_NS of an imported profile, and by how
 * much it is later than it was there. */
uint64_t simulator_profile_ns(struct simulator *r, uint32_t thread,
                              uint64_t time_ns);
int64_t *simulator_drift(struct simulator *r, uint32_t thread);

/* THREAD goes on at TIME_NS of the profile, after a wait; and comes to OP. */
void simulator_profile_from(struct simulator *r, uint32_t thread,
                            uint64_t time_ns);
void simulator_profile_come(struct simulator *r, const struct op *op);

/* The host is in a step whose times are the typical ones. */
bool simulator_is_typical(const struct simulator *r);

/* The step that it is in; SIMULATION_NO_STEP: none. */
uint32_t simulator_step(const struct simulator *r);

/* --- work ----------------------------------------------------------------- */

/* Whether OP, of a profile, gets a price in place of what was measured. */
bool simulator_reprices(const struct simulator *r, const struct op *op);

/* The price of OP; false: it is no work of the device's, and no call. */
bool simulator_price(struct simulator *r, const struct op *op,
                     struct price *price);

/* THREAD hands OP to the device on STREAM. */
void simulator_submit(struct simulator *r, const struct op *op,
                      uint32_t thread, uint32_t stream,
                      const struct price *price);

/* --- delays (simulator_delay.c) ------------------------------------------- */

void simulator_delay_init(struct simulator *r);

/* The host comes to ITEM, which may begin a step. */
void simulator_delay_record(struct simulator *r, const struct trace_item *item);

/* What OP, of PRICE, gets. */
struct delay_effect simulator_delay_of(struct simulator *r,
                                       const struct op *op,
                                       const struct price *price);

/* --- calls ---------------------------------------------------------------- */

/* Listener of an op_trace: the host comes to OP. CONTEXT is the simulator. */
void simulator_op(void *context, const struct op *op);

/* The host goes on with the call that it has not done with. */
void simulator_call_finish(struct simulator *r);

/* The host goes on with what waits for that call. */
void simulator_queue_go(struct simulator *r);

#endif
