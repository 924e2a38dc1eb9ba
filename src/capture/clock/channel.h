/* SPDX-License-Identifier: Apache-2.0
 * The communicators of this process, and which of their ranks are processes of
 * the run. */
#ifndef MEMSIM_CAPTURE_CLOCK_CHANNEL_H
#define MEMSIM_CAPTURE_CLOCK_CHANNEL_H

#include "capture/core/run/meeting.h"
#include "common/base/map.h"
#include "common/base/rank_set.h"
#include "common/trace/op.h"
#include "common/trace/trace_read.h"
#include "playback/price.h"

#define CHANNEL_ID_BYTES 24 /* of a communicator, in its record */

struct channel {
    uint64_t handle;
    char id[CHANNEL_ID_BYTES];
    uint32_t rank, ranks;
    uint32_t *world;  /* its ranks in the world; NULL: not known */
    uint32_t number;  /* of the meeting's channel; MEETING_NONE: no others */
    uint32_t member;  /* this process, there */
    uint32_t rank_of[MEETING_MEMBERS]; /* of each member */
    uint32_t count;                    /* of members */
    struct price_place place; /* places.c's; nodes 0: not found yet */
    uint64_t collectives; /* so far */
    struct map messages;  /* likewise, by peer and direction */
};

/* FILE: what the ranks stand for; NULL: there are no others. */
void channels_open(const struct meeting_file *file);

void channels_process(const struct trace_process *process);
void channel_record(const struct trace_item *item);

/* Adds to *MEMBERS the ranks that RANK runs for, itself among them; none where
 * they are not known. */
void channels_members(uint32_t rank, struct rank_set *members);

/* That of the communicator HANDLE; NULL: it is not known. */
struct channel *channel_known(uint64_t handle);

/* The same, by what is known now of whom ranks stand for. */
struct channel *channel_find(uint64_t handle);

/* Whether a call named NAME is a send, a receive or a group of them; and the
 * parts of OP, such a call: *COUNT, at least one, which may be *OWN. */
bool channel_is_message(const char *name);
const struct op_part *channel_parts(const struct op *op, struct op_part *own,
                                    uint32_t *count);

/* Whether PEER, a rank of the communicator, is another process. */
bool channel_has(const struct channel *c, uint32_t peer);

/* The place of the next message to or from PEER, from 0. */
uint64_t channel_count(struct channel *c, uint32_t peer, bool receives);

/* Sets POINT for PART, the N-th message of its kind. False: the other side is
 * no process. */
bool channel_message(const struct channel *c, const struct op_part *part,
                     uint64_t n, struct meeting_point *point);

#endif
