/* SPDX-License-Identifier: Apache-2.0
 * What the simulator's files share. */
#ifndef MEMSIM_RUNTIME_SIM_SIM_INTERNAL_H
#define MEMSIM_RUNTIME_SIM_SIM_INTERNAL_H

#include "runtime/sim/sim.h"

#define SIM_NEVER UINT64_MAX

/* Work is counted in ns of SIM_WHOLE parts. 64 bits hold 3.3 days of it: of
 * longer work each 2^SIM_COARSE of them are one, and a year is the most. */
#define SIM_LONG_NS (UINT64_C(1) << 47)
#define SIM_MOST_NS (UINT64_C(1) << 55)
#define SIM_COARSE  8

struct sim_op {
    uint64_t tag, called_ns, duration_ns;
    uint64_t ordinal;      /* among all of the device */
    uint64_t dep_sequence; /* the operation of dep_stream that it waits for;
                              its tag is that of the work before that one */
    uint32_t dep_stream;   /* SIM_NONE: nothing */
    uint32_t event;        /* that it records; SIM_NONE */
    uint32_t share, gap_ns, meet, thread, flow;
    uint8_t engine, link;
    bool neighbour, apart;
    bool timed; /* work, else a record or a wait, which take no time */
};

/* waiting: an event or nothing known; ready: at ready_ns; arrived: peers are
 * missing; running; finished: peers are not. */
enum sim_state {
    SIM_EMPTY,
    SIM_WAITING,
    SIM_READY,
    SIM_ARRIVED,
    SIM_RUNNING,
    SIM_FINISHED,
};

struct sim_queue { /* a stream */
    struct sim_op *ring;
    uint32_t capacity; /* a power of two */
    uint32_t device;
    uint64_t head, tail; /* sequences: head completed, tail submitted so far */
    int32_t priority;
    uint8_t flags;
    /* of the head */
    uint8_t state; /* enum sim_state */
    uint8_t cause; /* enum sim_cause, of ready_ns */
    bool checked;  /* it is known what it waits for */
    uint64_t cause_tag;
    uint64_t ready_ns, start_ns;
    uint64_t left; /* of it, in ns of parts */
    uint64_t held; /* of that, with peers that have yet to come */
    uint32_t speed;
    uint32_t net_speed; /* what the network leaves, of SIM_WHOLE */
    uint8_t coarse; /* 0 or SIM_COARSE */
    uint32_t next_member; /* of its meet */
    /* of the stream */
    uint64_t free_ns;        /* the end of the last work */
    uint64_t done_ns;        /* when its last operation was completed */
    uint64_t dep_ns;         /* when the last wait ended */
    uint64_t last_tag;       /* of the work submitted last */
    uint64_t before_tag;     /* of the work completed last */
    uint64_t event_tag;      /* of what the last wait waited for */
    uint64_t legacy_seen;    /* the legacy stream's tail that it waits for */
    uint64_t seen_by_legacy; /* its own tail that the legacy stream waits for */
    uint32_t waiters;        /* first stream whose head waits for this one */
    uint32_t next_waiter;
};

struct sim_device {
    struct sim_gpu gpu;
    uint64_t now;
    uint64_t next_ns; /* of its next event */
    uint32_t heap_at;
    uint64_t submitted; /* operations */
    uint32_t *active;   /* streams that are not empty, by priority and number */
    uint32_t active_count, active_capacity;
    uint32_t crowd; /* so many active ones are run before one more comes */
    uint32_t *streams; /* all */
    uint32_t stream_count, stream_capacity;
    uint32_t legacy;            /* SIM_NONE */
    uint32_t busy[SIM_ENGINES]; /* running */
    uint32_t busy_links[SIM_LINKS];
    uint32_t peers_missing;      /* heads that have arrived */
    uint32_t neighbours_missing; /* those of them that wait for a neighbour */
    uint32_t finishing;          /* heads whose peers still run */
    struct sim_mark_entry {
        uint64_t ordinal, ns, tag;
    } * marks; /* in order, a ring from mark_head */
    uint32_t mark_head, mark_count, mark_capacity;
    uint32_t blocked;  /* first thread that waits for this device */
    uint64_t last_tag; /* completed last, at done_ns */
    uint64_t done_ns;
    uint64_t engine_tag[SIM_ENGINES]; /* likewise, of each engine */
    bool stale; /* heads were completed from elsewhere: run it at once */
    uint64_t use_ns[SIM_USES];
};

struct sim_event_state {
    uint32_t stream; /* SIM_NONE: never recorded */
    uint64_t sequence;
    uint64_t ns;  /* SIM_NEVER: not reached */
    uint64_t tag; /* of the work before it in its stream */
};

enum sim_target { SIM_FREE, SIM_FOR_SEQUENCE, SIM_FOR_DEVICE };

struct sim_host {
    uint64_t now;
    enum sim_target waits;
    uint32_t stream, device;
    uint64_t until; /* sequence or ordinal that must be completed */
    uint64_t woken_by;
    uint32_t next_blocked;
};

struct sim_group {
    uint32_t expected, arrived, finished;
    uint32_t members; /* first stream */
    uint32_t next_free;
    uint32_t pairs; /* first one that it is in; SIM_NONE */
    uint32_t held;  /* parts of its work whose peers have yet to come */
    bool apart; /* its members end apart */
    bool others; /* it has members elsewhere, or exchanges with such */
};

/* What one of two has to do with the OTHER. */
struct sim_pair {
    uint32_t other;            /* group */
    uint32_t part, other_part; /* of the work of each */
    uint32_t next;             /* of this group; SIM_NONE */
};

/* A collective that is under way through the network; sim_net.c. */
struct sim_flow {
    uint32_t key;     /* its meet, or its stream | SIM_FLOW_ALONE */
    uint32_t running; /* operations of it */
};

#define SIM_FLOW_ALONE (UINT32_C(1) << 31)


/* What is known of members elsewhere, and has not happened yet. */
struct sim_told {
    uint64_t ns;
    uint32_t group;
};

struct sim {
    struct sim_memory memory;
    struct sim_sink sink;
    struct sim_others others;
    struct sim_told *told;
    uint32_t told_count, told_capacity;
    uint32_t open;    /* times of others that are waited for */
    uint64_t safe_ns; /* until then the others do nothing */
    struct sim_queue *streams;
    struct sim_device *devices;
    struct sim_event_state *events;
    struct sim_host *threads;
    struct sim_group *groups;
    struct sim_pair *pairs;
    uint32_t *heap; /* devices by next_ns */
    uint32_t stream_count, stream_capacity, device_count, device_capacity,
        event_count, event_capacity, thread_count, thread_capacity, group_count,
        group_capacity, pair_count, pair_capacity, heap_capacity, free_group,
        free_pair;
    struct sim_network network; /* share NULL: none */
    struct sim_flow *flows;     /* those under way, ... */
    uint32_t *flow_numbers;     /* ... the caller's numbers ... */
    uint32_t *flow_speeds;      /* ... and what they get */
    uint32_t flow_count, flow_capacity, number_capacity, speed_capacity;
    bool together;
    uint64_t wakes;
};

/* NS and BY more; the last time there is, where that is later. */
static inline uint64_t sim_later(uint64_t ns, uint64_t by)
{
    return ns < SIM_NEVER - by ? ns + by : SIM_NEVER;
}

/* Makes room for element COUNT. Returns 0 or -1. */
int sim_room(struct sim *s, void *array, uint32_t count, uint32_t *capacity,
             size_t bytes);

static inline struct sim_op *queue_at(const struct sim_queue *q,
                                      uint64_t sequence)
{
    return &q->ring[sequence & (q->capacity - 1)];
}

/* sim_device.c */

/* STREAM of DEVICE was empty and has an operation now. Returns 0 or -1. */
int device_activate(struct sim *s, uint32_t device, uint32_t stream);
/* DEVICE does what happens at its next event. */
void device_run(struct sim *s, uint32_t device);
/* D goes on to NS, as fast as it was until now. */
void device_progress(struct sim *s, struct sim_device *d, uint64_t ns);
/* Works out DEVICE's speeds and its next event anew. */
void device_refresh(struct sim *s, uint32_t device);
/* How many of DEVICE's operations, in the order of their calls, are completed
 * without exception. */
uint64_t device_completed(const struct sim *s, const struct sim_device *d);
/* DEVICE's place among those by next event. */
void device_sift_many(struct sim *s, uint32_t device);
static inline void device_sift(struct sim *s, uint32_t device)
{
    if (s->device_count > 1)
        device_sift_many(s, device);
}

/* sim_net.c: Q's head, which has a flow, begins to run on D, or no longer does.
 * Others' speeds change; D and its streams are to be refreshed. */
void flow_begin(struct sim *s, uint32_t stream);
void flow_end(struct sim *s, uint32_t stream);

/* sim_others.c */

/* The own member of GROUP, of STREAM, has come; or is done. */
void others_tell_came(struct sim *s, uint32_t group, uint64_t ns);
void others_tell_ended(struct sim *s, uint32_t group, uint64_t ns);
/* Whether the devices may go on until NS. */
bool others_let(struct sim *s, uint64_t limit_ns);
/* The first of what is told; SIM_NEVER: nothing is. */
uint64_t others_next(const struct sim *s);
/* Does it. */
void others_happen(struct sim *s);
/* A stand-in for one elsewhere that is done with. */
void others_forget(struct sim *s, uint32_t group);

/* sim_device.c: what others_happen does. All members of GROUP have come, or
 * have ended, at NS; the one that OTHER stands for has come to its peer. */
void group_begin(struct sim *s, uint32_t group, uint64_t ns);
void group_finish(struct sim *s, uint32_t group, uint64_t ns);
void group_meet(struct sim *s, uint32_t other, uint64_t ns);

/* sim_host.c: threads that wait for D are looked at. */
void hosts_wake(struct sim *s, struct sim_device *d);

#endif
