/* SPDX-License-Identifier: Apache-2.0
 * Where the simulations of a job's ranks meet, while they run: a file of the
 * run that their processes map (capture/core/run/meeting.h). `memsim run' makes
 * it, zeroed but for its head and the ranks behind it; without --local-clock
 * alone. Plain data: no pointers; a process may be killed at any point. */
#ifndef MEMSIM_COMMON_TRACE_MEETING_H
#define MEMSIM_COMMON_TRACE_MEETING_H

#include <stdatomic.h>
#include <stdint.h>

#define MEETING_FILE     "meeting"
#define MEETING_MAGIC    UINT64_C(0x31746565746d656d) /* "memteet1" */
#define MEETING_SEATS    64   /* processes at once */
#define MEETING_MEMBERS  64   /* of a channel */
#define MEETING_CHANNELS 4096 /* communicators */
#define MEETING_POINTS   8192 /* under way */
#define MEETING_BUCKETS  4096
#define MEETING_CONTENDED (UINT32_C(1) << 31) /* somebody waits for the lock */
#define MEETING_NONE     UINT32_MAX
#define MEETING_NEVER    UINT64_MAX

enum meeting_state {
    MEETING_FREE,
    MEETING_RUNS,
    MEETING_WAITS,
    MEETING_WOKEN, /* it waited, and has something to do */
    MEETING_ENDED,
};

struct meeting_seat {
    uint32_t state; /* enum meeting_state */
    uint32_t pid, job;
    uint64_t bound_ns; /* before that it does nothing that concerns others, but
                          for what they let it do */
    _Atomic uint32_t wanted; /* others wait for it: it is to go on */
    _Atomic uint32_t news;   /* counts wakes: a futex */
    _Atomic uint32_t vain;   /* looks, since it lacks something of others and
                                cannot go on; 0: it lacks nothing */
};

/* A communicator, as all of its members know it. */
struct meeting_channel {
    uint64_t key;    /* 0: free */
    uint64_t absent; /* members that are not expected any more */
    uint32_t seat_1[MEETING_MEMBERS]; /* + 1; 0: it has not come yet */
    uint64_t before[MEETING_MEMBERS]; /* collectives of each before it joined:
                                         nobody waits for it there */
};

/* Members come to a collective or to a message, and are done with it. Masks are
 * of members. */
struct meeting_entry {
    uint32_t channel, next_1; /* the next one of its bucket, + 1 */
    uint64_t number, expected;
    struct meeting_phase {
        uint64_t told, read;
        uint64_t ns; /* the latest */
    } phase[2]; /* they come; they are done */
    uint64_t gone; /* members that have ended */
};

struct meeting_file {
    uint64_t magic;
    uint64_t bytes;  /* sizeof(struct meeting_file) */
    uint32_t world;  /* of the ranks behind it; 0: each stands for itself */
    _Atomic uint32_t learnt; /* how often those behind it were changed */
    _Atomic uint32_t lock; /* the pid of who holds it, MEETING_CONTENDED; 0 */
    uint32_t entries_used, free_1;
    struct meeting_seat seats[MEETING_SEATS];
    uint32_t buckets_1[MEETING_BUCKETS];
    struct meeting_entry entries[MEETING_POINTS];
    struct meeting_channel channels[MEETING_CHANNELS];
    uint32_t stands[]; /* of each rank of the world the one that runs for it */
};

#endif
