/* SPDX-License-Identifier: Apache-2.0
 * The simulations of a job's ranks tell each other when they come to a
 * collective, and when they are done with it: in a file that all of them map
 * (common/trace/meeting.h). All under LOCK_RECORD.
 *
 * One that waits sleeps, in this machine's time. It cannot wait for ever: it is
 * woken when what it waits for is there, or when it is the first of all in
 * simulated time, so that nobody can be before it. Those that need
 * something of another rank to go on (meeting_lacks) do nothing before
 * that one acts: where all others are such or sleep, the first of the sleeping
 * goes on. Where a rank
 * has ended, or all programs of the run do nothing, it goes on without the
 * missing ones.
 */
#ifndef MEMSIM_CAPTURE_CORE_RUN_MEETING_H
#define MEMSIM_CAPTURE_CORE_RUN_MEETING_H

#include <stdbool.h>
#include <stdint.h>

#include "capture/core/base/core.h"
#include "common/trace/meeting.h"
#include "common/trace/rank_axis.h"

/* A collective, or a message, as one member sees it. */
struct meeting_point {
    uint32_t channel, member;
    uint64_t number;   /* on the channel */
    uint64_t expected; /* mask of members */
    bool has_end;      /* its members end together */
    bool ended;        /* it waits for the end of the others */
};

/* Takes a seat in the file of the run; NULL: there is none, or no room. */
CORE_API const struct meeting_file *memsim_meeting_open(void);

/* Whether this process has a seat. */
bool meeting_is_open(void);

/* The ranks of the world that are processes, by the session. */
CORE_API bool memsim_meeting_is_real(uint32_t rank);

/* Ranks differ along COUNT AXES: those that run stand for the others by their
 * places, in communicators that are made from now on; and, where this process
 * has learnt it of its own MESSAGES, in those that it has. */
void meeting_stands_learn(const struct rank_axis *axes, uint32_t count,
                          bool messages);

/* How often this process has learnt it of its messages. All that send each
 * other some learn it at the same place of their programs. */
CORE_API uint32_t memsim_meeting_learnt(void);

/* The channel KEY (not 0), which MEMBER comes to, after BEFORE collectives of
 * which it told nobody; MEETING_NONE: no room. */
CORE_API uint32_t memsim_meeting_channel(uint64_t key, uint32_t member,
                                         uint64_t before);

/* The member of P has come to it, or is done, at NS. Returns 0, or -1: there is
 * no room. */
CORE_API int memsim_meeting_put(const struct meeting_point *p, uint64_t ns);

/* Whether all have, and the latest time. */
CORE_API bool memsim_meeting_get(const struct meeting_point *p, uint64_t *ns);

/* This process does nothing before UNTIL_NS unless one of COUNT POINTS is
 * complete. Waits, where it is PATIENT, until one is (then 0 is returned), or
 * until nobody else does anything before UNTIL_NS. Returns until when nobody
 * does. */
CORE_API uint64_t memsim_meeting_look(const struct meeting_point *points,
                                      uint32_t count, uint64_t until_ns,
                                      bool patient);

/* This process does nothing before NS. */
CORE_API void memsim_meeting_bound(uint64_t ns);

/* Whether others wait for this process: it is to do what it can. */
extern _Atomic uint32_t *meeting_wanted;
CORE_API bool memsim_meeting_is_wanted(void);

/* This process has looked in vain for what others are to send it, values or
 * something of a store, and looks again soon. Without a lock. */
void meeting_lacks(void);

/* It has it. */
void meeting_has(void);

/* This process has ended its simulation: nobody waits for it any more. */
void meeting_leave(void);

/* Whether it has gone on without one that may still come. */
bool meeting_forsook(void);

/* How long it slept, of the host's time, since the last call. */
uint64_t meeting_slept(void);

/* In a forked child, which has no seat. */
void meeting_after_fork(void);

#endif
