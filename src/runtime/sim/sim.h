/* SPDX-License-Identifier: Apache-2.0
 * The stream simulator: when each operation of a program starts and ends on
 * GPUs that run streams as queues, and how long its host threads wait.
 *
 * Pure and deterministic: integer nanoseconds, no clock, no I/O, no randomness.
 * Memory comes from the caller's hook and only where queues grow, never once
 * for each operation. Not for several threads at a time.
 *
 * A caller describes devices, streams, events and host threads, then tells of
 * the host's calls in the order in which they happen. Each host thread has a
 * clock; a call puts operations into queues at that clock's time. The devices
 * lag behind and are run when a thread has to wait:
 *
 *   host thread ──call──► stream queue ──head──► compute, copy engine, link
 *        ▲                    │ (waits for events, other streams, peers)
 *        └───────── waits ◄───┘ completes
 *
 * An operation starts when it is the head of its stream, its host call has been
 * made, the one before it has ended (and a gap has passed), the event that it
 * waits for is reached, its engine is free, and the peers of its collective
 * have come. Ties are broken by priority, then stream, then sequence. What
 * exchanges with peers (sim_pair) starts with the first of them and pauses
 * while there is only work with those that have yet to come.
 *
 * Sharing. Operations on the compute engine of a device run at the same time;
 * each can use a share of the device (what its grid can fill). While the shares
 * of those that run are at most the device's capacity, each runs at full speed;
 * beyond that the speed of all of one priority is capacity / sum of shares, and
 * lower priorities get what is left. A collective or a copy that runs takes a
 * part of the capacity (struct sim_gpu). Copy engines do one copy at a time.
 * Collectives that run on one device at the same time share its link
 * equally; the link inside a node and the one between nodes are two.
 *
 * Several programs, as the ranks of a job: their hosts are described in turn.
 * With sim_together, a wait does not run the devices; when every host waits,
 * the caller does so with sim_step until one of them waits no more. Then no
 * device ever gets ahead of a host that has yet to call.
 *
 * Several simulators, one for each of such programs: a meet may have members
 * elsewhere. The simulator tells when its own member comes and ends (struct
 * sim_others), and does not go on before it knows when the others do, or that
 * they do nothing until then. All come to the same times as one simulator of
 * all programs, but for events at the same nanosecond. */
#ifndef MEMSIM_RUNTIME_SIM_SIM_H
#define MEMSIM_RUNTIME_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_NONE  UINT32_MAX /* no stream, event, ... */
#define SIM_WHOLE 65536      /* of a share or a speed: all of it */

/* Returns memory of BYTES with the contents of OLD, which it replaces
 * (OLD_BYTES of it; NULL at first); what is new is zero. NULL: there is none.
 */
struct sim_memory {
    void *(*grow)(void *context, void *old, size_t old_bytes, size_t bytes);
    void *context;
};

/* What of a device is not in the prices of its operations. Parts are of
 * SIM_WHOLE. */
struct sim_gpu {
    uint32_t queue_depth; /* operations of a stream before the host blocks */
    uint32_t comm_takes;  /* part of compute while a collective runs */
    uint32_t copy_takes;  /* part of compute while a copy runs */
    uint32_t comm_loses;  /* part of a collective's speed beside compute */
};

enum sim_engine {
    SIM_STREAM_ONLY, /* takes time on its stream, no resource: host functions */
    SIM_COMPUTE,
    SIM_COPY_IN,  /* host to device */
    SIM_COPY_OUT, /* device to host */
    SIM_COPY_PEER,
    SIM_COMM,
    SIM_LATE, /* as SIM_STREAM_ONLY, before a collective that comes late */
    SIM_ENGINES,
};

/* What a collective's bytes go through. */
enum sim_link { SIM_LINK_NODE, SIM_LINK_NODES, SIM_LINKS };

enum sim_stream_flags {
    SIM_BLOCKING,     /* waits for the legacy default stream, and it for this */
    SIM_NON_BLOCKING, /* does not */
    SIM_LEGACY,       /* the legacy default stream */
};

struct sim_work {
    enum sim_engine engine;
    uint64_t duration_ns; /* at full speed */
    uint32_t share;       /* of compute that it can fill; 0: all */
    uint32_t gap_ns;      /* since the end of the one before it */
    uint32_t latency_ns;  /* from the call to the earliest start */
    uint32_t meet;        /* sim_meet's, of a collective; SIM_NONE */
    enum sim_link link;   /* of a collective */
    uint32_t flow;        /* of a collective through a network that others share
                             (sim_share): 1 + the caller's number; 0: none */
    bool neighbour;       /* its peer is a neighbour: a wait is a bubble */
    bool apart;           /* it ends after its own duration, not with the others
                             of its meet; alike for all of them */
    uint64_t tag;         /* the caller's, in sim_done */
};

/* What kept an operation from starting sooner, or a thread from going on. */
enum sim_cause {
    SIM_BY_HOST,   /* its host call came late: host to device */
    SIM_BY_STREAM, /* the operation before it, device to device */
    SIM_BY_EVENT,  /* another stream's, device to device */
    SIM_BY_ENGINE, /* the copy engine was busy */
    SIM_BY_PEER,   /* a peer of its collective came late */
    SIM_CAUSES,
};

/* An operation that has completed. */
struct sim_done {
    uint64_t tag;
    uint32_t device, stream, thread;
    enum sim_engine engine;
    uint64_t called_ns, ready_ns, start_ns, end_ns;
    uint64_t duration_ns; /* at full speed */
    enum sim_cause cause; /* of its start */
    uint64_t before_tag;  /* the one before it in its stream; 0: none */
    uint64_t event_tag;   /* what its stream waited for; 0: nothing */
    uint64_t cause_tag;   /* the operation of CAUSE; 0: the host */
};

/* What a device did with its time. */
enum sim_use {
    SIM_USE_COMPUTE,      /* compute alone */
    SIM_USE_COMPUTE_COMM, /* with a collective beside it */
    SIM_USE_COMPUTE_COPY,
    SIM_USE_COMM, /* a collective, or one that comes late; no compute */
    SIM_USE_PEERS,  /* waiting for a collective's peers; neither of those */
    SIM_USE_BUBBLE, /* the same of a send or a receive: a pipeline's bubble */
    SIM_USE_COPY, /* a copy; neither of those */
    SIM_USE_HOST, /* idle: the host had called nothing that could run */
    SIM_USE_IDLE, /* idle: gaps, waits between streams, host functions */
    SIM_USES,
};

/* A mark that a device has reached: see sim_mark. */
struct sim_marked {
    uint64_t tag;
    uint32_t device;
    uint64_t ns;
    uint64_t use_ns[SIM_USES]; /* since the device's time 0 */
};

/* Any may be NULL. Must not call the simulator. */
struct sim_sink {
    void (*done)(void *context, const struct sim_done *done);
    void (*marked)(void *context, const struct sim_marked *marked);
    void *context;
};

struct sim;

/* Returns a simulator in MEMORY, or NULL. There is no destructor: memory is
 * the hook's to free. */
struct sim *sim_create(const struct sim_memory *memory,
                       const struct sim_sink *sink);

/* Each returns a number from 0, SIM_NONE where memory is lacking. */
uint32_t sim_device(struct sim *s, const struct sim_gpu *gpu);
uint32_t sim_stream(struct sim *s, uint32_t device, enum sim_stream_flags flags,
                    int32_t priority); /* lower numbers go first, as in CUDA */
uint32_t sim_event(struct sim *s);
uint32_t sim_thread(struct sim *s);
/* A collective of EXPECTED operations, which start together when the last has
 * come and end together. Used once; its number is given again afterwards. */
uint32_t sim_meet(struct sim *s, uint32_t expected);
/* A and B, meets of one operation each, of which none has come, exchange: a
 * part (of SIM_WHOLE) of each's work can be done only when both have come.
 * Returns 0, or -1 where memory is lacking. */
int sim_pair(struct sim *s, uint32_t a, uint32_t a_part, uint32_t b,
             uint32_t b_part);

/* --- members elsewhere --- */

/* Must not call the simulator, but for sim_others_came and sim_others_ended. */
struct sim_others {
    /* The own member of MEET has come, or is done with its work, at NS. */
    void (*came)(void *context, uint32_t meet, uint64_t ns);
    void (*ended)(void *context, uint32_t meet, uint64_t ns);
    /* Returns a time until which nothing is to be expected of the others,
     * UNTIL_NS if it can: it may wait for that. If it returns less and has
     * called neither of the functions below, the devices stop for now. */
    uint64_t (*look)(void *context, uint64_t until_ns);
    void *context;
};

/* From now on OTHERS (copied) are told of such meets. */
void sim_others(struct sim *s, const struct sim_others *others);

/* A meet of one own operation and of others elsewhere: as sim_meet. */
uint32_t sim_meet_others(struct sim *s);
/* A, a meet of one own operation, exchanges A_PART of its work with one that is
 * elsewhere, whose number is returned: as sim_pair. `came' is called with A. */
uint32_t sim_pair_others(struct sim *s, uint32_t a, uint32_t a_part);

/* The others of MEET have come, and are done, at NS. To be called once the own
 * one has. Returns 0, or -1 where memory is lacking. */
int sim_others_came(struct sim *s, uint32_t meet, uint64_t ns);
int sim_others_ended(struct sim *s, uint32_t meet, uint64_t ns);

/* When the next thing happens that is known of; UINT64_MAX: nothing is. */
uint64_t sim_next(const struct sim *s);

/* --- host threads --- */

uint64_t sim_now(const struct sim *s, uint32_t thread);
/* The thread works for NS; it does nothing until NS at least. */
void sim_spend(struct sim *s, uint32_t thread, uint64_t ns);
void sim_until(struct sim *s, uint32_t thread, uint64_t ns);

/* Calls. They return 0, or -1 where memory is lacking or THREAD still waits.
 * After those that may wait, sim_waits() says whether THREAD does: then it
 * makes no call before sim_settle(), or other threads' calls and sim_step(),
 * have ended that. */
int sim_submit(struct sim *s, uint32_t thread, uint32_t stream,
               const struct sim_work *work); /* waits where the queue is full */
int sim_record(struct sim *s, uint32_t thread, uint32_t stream, uint32_t event);
int sim_wait_event(struct sim *s, uint32_t thread, uint32_t stream,
                   uint32_t event); /* the stream waits for EVENT as recorded */
int sim_sync_stream(struct sim *s, uint32_t thread, uint32_t stream);
int sim_sync_event(struct sim *s, uint32_t thread, uint32_t event);
int sim_sync_device(struct sim *s, uint32_t thread, uint32_t device);

bool sim_waits(const struct sim *s, uint32_t thread);
/* The tag of the operation whose end let THREAD's last wait end; 0: it did not
 * have to wait. Device to host. */
uint64_t sim_woken_by(const struct sim *s, uint32_t thread);

/* Collectives share a network: SHARE sets the SPEEDS, of SIM_WHOLE and above 0,
 * of COUNT that are under way, each by its work's flow - 1. It is asked when
 * one begins or ends, and must not call the simulator. */
struct sim_network {
    void (*share)(void *context, const uint32_t *flows, uint32_t count,
                  uint32_t *speeds);
    void *context;
};
void sim_share(struct sim *s, const struct sim_network *network);

/* Waits leave it to the caller to run the devices; see above. */
void sim_together(struct sim *s);
/* How many waits of threads have ended. */
uint64_t sim_wakes(const struct sim *s);

/* Does what is queued until THREAD waits no more. Returns 0, or -1 where that
 * will never be: a peer is missing. */
int sim_settle(struct sim *s, uint32_t thread);

/* --- devices --- */

/* Is EVENT, as it was recorded last, reached at NS? (Runs the devices to NS.)
 * sim_event_ns: when it was; UINT64_MAX: not yet. */
bool sim_event_done(struct sim *s, uint32_t event, uint64_t ns);
uint64_t sim_event_ns(const struct sim *s, uint32_t event);

/* Tells the sink when DEVICE has completed all that was submitted until now,
 * at NS at the earliest. */
int sim_mark(struct sim *s, uint32_t device, uint64_t ns, uint64_t tag);

/* Does what comes next, where that is not after LIMIT_NS. Returns false where
 * nothing is. Calls made later at times before what was done start no sooner
 * than that. */
bool sim_step(struct sim *s, uint64_t limit_ns);
/* Does all that can be done. Returns false where something is left that never
 * will be. */
bool sim_drain(struct sim *s);

#endif
