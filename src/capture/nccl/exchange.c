/* SPDX-License-Identifier: Apache-2.0
 *
 *   ncclX()           posts what this rank sends (mailbox.h), and never waits
 *   complete()        reads what the others posted, and writes the result
 *   who reads it      waits until complete() could do that (await.h)
 */
#include "capture/nccl/exchange.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/core/base/pages.h"
#include "capture/core/run/clock.h"
#include "capture/core/run/live.h"
#include "capture/core/run/meeting.h"
#include "capture/core/run/peers.h"
#include "capture/core/run/process.h"
#include "capture/core/work/stream.h"
#include "capture/nccl/gpu.h"
#include "capture/nccl/operation.h"
#include "capture/nccl/sources.h"
#include "common/trace/session.h"

/* When the other programs of the run have used less of the processor than
 * BUSY_PERCENT for so long, a missing rank (COME_MS) or message (SEND_MS) is
 * not waited for any longer. */
#define BUSY_PERCENT 3
#define BUSY_MS      30 /* what a look at them may find */
#define COME_MS      5000
#define SEND_MS      20000
#define LOOK_MS      500

_Static_assert(sizeof(struct exchange_wait) <= AWAIT_BYTES, "does not fit");

/* Room for two letters; with LOCK. */
static struct reduce_side sides[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool sides_open(void)
{
    for (int i = 0; i < 2; i++) {
        if (!sides[i].data)
            sides[i].data = memsim_pages_reserve(0, MAILBOX_BYTES);
        if (!sides[i].marks)
            sides[i].marks = memsim_pages_reserve(0, MAILBOX_BYTES);
        if (!sides[i].data || !sides[i].marks)
            return false;
    }
    return true;
}

/* --- who sends what ------------------------------------------------------- */

/* Whether what E sends, or receives, is a share of every rank's. */
static bool sends_shares(const struct exchange *e)
{
    return e->shape == SHAPE_REDUCE_SCATTER || e->shape == SHAPE_SCATTER ||
           e->shape == SHAPE_ALL_TO_ALL;
}

static bool receives_shares(const struct exchange *e)
{
    return e->shape == SHAPE_GATHER || e->shape == SHAPE_ALL_TO_ALL;
}

static bool is_root(const struct exchange *e, const struct communicator *c)
{
    return e->root == EXCHANGE_ALL || e->root == c->rank;
}

static bool has_one_source(const struct exchange *e)
{
    return e->shape == SHAPE_BROADCAST || e->shape == SHAPE_SCATTER ||
           e->shape == SHAPE_RECEIVE;
}

static bool exchange_sends(const struct exchange *e,
                           const struct communicator *c)
{
    if (e->shape == SHAPE_BROADCAST || e->shape == SHAPE_SCATTER)
        return is_root(e, c);
    return e->shape != SHAPE_RECEIVE;
}

static bool exchange_receives(const struct exchange *e,
                              const struct communicator *c)
{
    if (e->shape == SHAPE_REDUCE || e->shape == SHAPE_GATHER)
        return is_root(e, c);
    return e->shape != SHAPE_SEND;
}

static uint64_t letter_bytes(const struct exchange *e,
                             const struct communicator *c)
{
    return e->share * (sends_shares(e) ? (uint64_t)c->ranks : 1);
}

static uint64_t received_bytes(const struct exchange *e,
                               const struct communicator *c)
{
    return e->share * (receives_shares(e) ? (uint64_t)c->ranks : 1);
}

/* The same on all ranks. */
static bool is_small(const struct exchange *e, const struct communicator *c)
{
    return letter_bytes(e, c) <= MAILBOX_BYTES &&
           received_bytes(e, c) <= MAILBOX_BYTES;
}

static struct mailbox_letter letter_of(const struct exchange *e,
                                       const struct communicator *c,
                                       uint32_t from)
{
    return (struct mailbox_letter){
        .from = from,
        .to = e->shape == SHAPE_SEND      ? (uint32_t)e->root
              : e->shape == SHAPE_RECEIVE ? (uint32_t)c->rank
                                          : MAILBOX_ALL,
        .number = e->number,
        .bytes = letter_bytes(e, c)};
}

static void post_values(const struct exchange *e, struct communicator *c)
{
    const struct mailbox_letter letter = letter_of(e, c, (uint32_t)c->rank);

    memsim_await_memory(e->send, letter.bytes);
    pthread_mutex_lock(&lock);
    if (sides_open()) {
        bool some = nccl_gpu_take(e->send, letter.bytes, sides[0].data,
                                       sides[0].marks);
        memsim_mailbox_post(&c->box, &letter, some ? sides[0].data : NULL,
                            sides[0].marks);
    }
    pthread_mutex_unlock(&lock);
}

/* --- whether it is there -------------------------------------------------- */

static bool is_gone(const struct communicator *c, uint32_t rank)
{
    for (uint32_t i = 0; i < c->gone_count; i++)
        if (c->gone[i] == rank)
            return true;
    return false;
}

/* Whether nothing of FROM's is waited for: it is there, or does not come. */
static bool has_come(const struct exchange *e, const struct communicator *c,
                     uint32_t from)
{
    const struct mailbox_letter letter = letter_of(e, c, from);

    if (is_gone(c, from))
        return true;
    switch (memsim_mailbox_read(&c->box, &letter, 0, 0, NULL, NULL)) {
    case MAIL_NOT_YET:
        return false;
    case MAIL_NOBODY:
        return c->box.is_full;
    default:
        return true;
    }
}

/* E as RANK called it: one of a group of broadcasts, each of the next rank. */
static struct exchange turn_of(const struct exchange *e, int rank)
{
    struct exchange other = *e;

    other.root = rank;
    other.number += (uint64_t)(int64_t)(rank - e->root);
    return other;
}

/* A group of broadcasts, one from each rank in turn, gathers shares (PyTorch's
 * all_gather of a list): a rank that is no process sends what the one that
 * stands for it sends in its own turn, which becomes OTHER; its rank, or -1: E
 * is no such broadcast. */
static int stand_in(const struct exchange *e, const struct communicator *c,
                    struct exchange *other)
{
    struct sources s;
    const struct exchange own = turn_of(e, c->rank);
    const struct mailbox_letter letter = letter_of(&own, c, (uint32_t)c->rank);
    uint32_t pid;
    uint8_t by;

    if (e->shape != SHAPE_BROADCAST || !e->in_group ||
        memsim_mailbox_seated(&c->box, (uint32_t)e->root, &pid) ||
        memsim_mailbox_read(&c->box, &letter, 0, 0, NULL, NULL) != MAIL_HERE)
        return -1;
    sources_find(c, &s);
    sources_assign(c, &s, (uint32_t)e->root, 1, &by);
    *other = turn_of(e, (int)s.rank[by]);
    return (int)s.rank[by];
}

/* The first rank whose letter is waited for; -1: none. C->ranks: one that is
 * not there yet. */
static int missing_rank(const struct exchange *e, const struct communicator *c)
{
    struct sources s;

    if (has_one_source(e)) {
        struct exchange other;
        int rank = has_come(e, c, (uint32_t)e->root) ? stand_in(e, c, &other)
                                                     : e->root;
        return rank < 0 || rank == e->root ||
                       !has_come(&other, c, (uint32_t)rank)
                   ? rank
                   : -1;
    }
    sources_find(c, &s);
    for (uint32_t i = 0; i < s.count; i++)
        if (!has_come(e, c, s.rank[i]))
            return (int)s.rank[i];
    return s.count < (uint32_t)c->ranks && !c->box.is_full ? c->ranks : -1;
}

/* --- what it comes to ----------------------------------------------------- */

/* Reads COUNT bytes at AT of FROM's letter to SIDE; false: not known. */
static bool side_read(const struct exchange *e, const struct communicator *c,
                      uint32_t from, uint64_t at, uint64_t count,
                      const struct reduce_side *side)
{
    const struct mailbox_letter letter = letter_of(e, c, from);

    return memsim_mailbox_read(&c->box, &letter, at, count, side->data,
                               side->marks) == MAIL_HERE;
}

static bool is_unknown(const unsigned char *marks, uint64_t bytes)
{
    return !marks[0] && !memcmp(marks, marks + 1, bytes - 1);
}

/* How many of C's ranks are number I of BY. */
static uint64_t weight_of(const struct communicator *c, const uint8_t *by,
                          uint32_t i)
{
    uint64_t weight = 0;

    for (int r = 0; r < c->ranks; r++)
        weight += by[r] == i;
    return weight;
}

/* Of S, each as often as it is in BY. False: nothing is known of the sum. */
static bool sum_up(const struct exchange *e, const struct communicator *c,
                   const struct sources *s, const uint8_t *by)
{
    struct reduction r = nccl_reduction(e->operation, e->type, e->count);
    uint64_t at = sends_shares(e) ? (uint64_t)c->rank * e->share : 0;

    for (uint32_t i = 0; i < s->count; i++) {
        struct reduce_side *side = &sides[i > 0];

        side->weight = weight_of(c, by, i);
        if (!side_read(e, c, s->rank[i], at, e->share, side) ||
            is_unknown(side->marks, e->share))
            return false;
        if (i)
            memsim_reduce_next(&r, &sides[0], side);
        else
            memsim_reduce_first(&r, side);
    }
    if (e->operation == ncclAvg)
        memsim_reduce_divide(&r, &sides[0], (uint64_t)c->ranks);
    return s->count;
}

static void memory_put(uint64_t to, uint64_t bytes, bool known)
{
    if (known)
        nccl_gpu_give(to, bytes, sides[0].data, sides[0].marks);
    else
        nccl_gpu_forget(to, bytes);
}

/* Every rank's share, side by side: what number BY of S sends. */
static void gather_values(const struct exchange *e,
                          const struct communicator *c, const struct sources *s,
                          const uint8_t *by)
{
    uint64_t at = sends_shares(e) ? (uint64_t)c->rank * e->share : 0;

    for (uint32_t i = 0; i < s->count; i++) {
        bool known = side_read(e, c, s->rank[i], at, e->share, &sides[0]);

        for (int r = 0; r < c->ranks; r++)
            if (by[r] == i)
                memory_put(e->receive + (uint64_t)r * e->share, e->share,
                           known);
    }
}

/* Of a message from a rank that is no process: what this one sends it with the
 * same number. */
static bool mirror_read(const struct exchange *e, const struct communicator *c)
{
    struct exchange own = *e;

    own.shape = SHAPE_SEND;
    return side_read(&own, c, (uint32_t)c->rank, 0, e->share, &sides[0]);
}

/* Whether the buffer has what PyTorch fills uninitialized memory with where the
 * program wants deterministic algorithms: the largest integer, or NaN
 * (fill_empty_deterministic_ in aten/src/ATen/native/TensorFactories.h). */
static bool is_filled(const struct exchange *e)
{
    static const uint64_t fills[] = {
        [ncclInt8] = INT8_MAX,     [ncclUint8] = UINT8_MAX,
        [ncclInt32] = INT32_MAX,   [ncclUint32] = UINT32_MAX,
        [ncclInt64] = INT64_MAX,   [ncclUint64] = UINT64_MAX,
        [ncclFloat16] = 0x7e00,    [ncclFloat32] = 0x7fc00000,
        [ncclBfloat16] = 0x7fc0,   [ncclFloat64] = UINT64_C(0x7ff8) << 48,
    };
    uint64_t bytes = e->count ? e->share / e->count : 0;
    const unsigned char *data = sides[0].data;

    if ((size_t)e->type >= sizeof fills / sizeof *fills || !fills[e->type] ||
        !nccl_gpu_take(e->receive, e->share, sides[0].data,
                            sides[0].marks))
        return false;
    return !memcmp(data, &fills[e->type], bytes) &&
           !memcmp(data, data + bytes, e->share - bytes);
}

static bool group_read(const struct exchange *e, const struct communicator *c)
{
    struct exchange other;
    int rank = stand_in(e, c, &other);

    return rank >= 0 &&
           side_read(&other, c, (uint32_t)rank, 0, e->share, &sides[0]);
}

static void take_one(const struct exchange *e, const struct communicator *c)
{
    uint64_t at = e->shape == SHAPE_SCATTER ? (uint64_t)c->rank * e->share : 0;
    uint32_t pid;

    if (memsim_mailbox_seated(&c->box, (uint32_t)e->root, &pid))
        memory_put(e->receive, e->share,
                   side_read(e, c, (uint32_t)e->root, at, e->share, &sides[0]));
    else if (e->shape == SHAPE_RECEIVE)
        memory_put(e->receive, e->share, mirror_read(e, c));
    else if (e->shape == SHAPE_BROADCAST && group_read(e, c))
        memory_put(e->receive, e->share, true);
    else if (e->shape == SHAPE_BROADCAST && is_filled(e))
        nccl_gpu_forget(e->receive, e->share);
    /* else: what another one would send all, this one has itself */
}

/* What all ranks of C sent. Returns false where there is no memory. */
static bool take_all(const struct exchange *e, const struct communicator *c)
{
    struct sources s;
    uint8_t *by = malloc((size_t)c->ranks);

    if (!by)
        return false;
    sources_find(c, &s);
    sources_assign(c, &s, 0, s.count ? (uint32_t)c->ranks : 0, by);
    if (receives_shares(e))
        gather_values(e, c, &s, by);
    else
        memory_put(e->receive, e->share, sum_up(e, c, &s, by));
    free(by);
    return true;
}

static void carry_out(const struct exchange *e, const struct communicator *c)
{
    bool one = has_one_source(e), open = sides_open();

    if (open && one)
        take_one(e, c);
    else if (!open || !take_all(e, c))
        nccl_gpu_forget(e->receive, received_bytes(e, c));
}

static bool exchange_complete(void *data, bool unwanted, bool over)
{
    const struct exchange *e = &((const struct exchange_wait *)data)->e;
    const struct communicator *c = communicator_get(e->comm);

    if (!c)
        return true;
    if (!over && missing_rank(e, c) >= 0)
        return false;
    if (unwanted)
        return true;
    pthread_mutex_lock(&lock);
    carry_out(e, c);
    pthread_mutex_unlock(&lock);
    return true;
}

/* --- how long it is waited for -------------------------------------------- */

/* First for short times, and again when others wait for this process. */
static void wait_for_peers(void *data, unsigned ms)
{
    struct exchange_wait *p = data;
    const struct communicator *c = communicator_get(p->e.comm);

    if (p->wanted != memsim_meeting_is_wanted())
        p->looks = 0;
    p->wanted = memsim_meeting_is_wanted();
    ms = memsim_live_lacks(p->looks++, ms);
    if (c)
        memsim_mailbox_sleep(&c->box, ms);
}

/* For how long the other programs have done nothing. */
static uint64_t idle_ms(struct exchange_wait *p, uint64_t waited_ms)
{
    uint64_t busy = memsim_peers_busy_ms();

    if (!p->looked_ms ||
        busy > p->busy_ms + BUSY_MS +
                   (waited_ms - p->since_ms) * BUSY_PERCENT / 100) {
        p->busy_ms = busy;
        p->since_ms = waited_ms;
    }
    p->looked_ms = waited_ms;
    return waited_ms - p->since_ms;
}

static int world_rank(const struct communicator *c, int rank)
{
    return c->places ? (int)c->places[rank] : rank;
}

/* Whether all ranks of C are there that memsim started. */
static bool has_all_started(const struct communicator *c)
{
    const struct session *s = memsim_session();
    uint32_t pid;

    if (!s || !s->world_size ||
        (!c->places && (uint32_t)c->ranks != s->world_size))
        return false;
    for (int i = 0; i < c->ranks; i++)
        if (memsim_peer_is_real((uint32_t)world_rank(c, i)) &&
            !memsim_mailbox_seated(&c->box, (uint32_t)i, &pid))
            return false;
    return true;
}

/* Whether no rank comes to C that is not there, after IDLE_MS in which nobody
 * did anything. */
static bool is_full(const struct communicator *c, uint64_t idle)
{
    uint32_t ranks[MAILBOX_SEATS], peers = memsim_peers_count();

    return has_all_started(c) ||
           memsim_mailbox_ranks(&c->box, ranks) > peers ||
           idle >= (peers + 1 >= (uint32_t)c->ranks ? SEND_MS : COME_MS);
}

/* RANK of C is not waited for any more. */
static void forsake_rank(struct communicator *c, int rank)
{
    if (rank < c->ranks && c->gone_count < COMMUNICATOR_GONE)
        c->gone[c->gone_count++] = (uint32_t)rank;
}

static void say_mismatch(const struct exchange *e, const struct communicator *c,
                         int rank, const char *place, const char *why)
{
    char other[32] = "another rank";

    if (rank >= 0)
        snprintf(other, sizeof other, "rank %d", world_rank(c, rank));
    memsim_note("%s%srank %d waited in %s for %s, which %s; memsim goes on "
                "without its data",
                *place ? place : "", *place ? ": " : "",
                world_rank(c, c->rank), e->name, other, why);
}

static bool give_up(void *data, uint64_t waited_ms, const char *place)
{
    struct exchange_wait *p = data;
    struct communicator *c = communicator_get(p->e.comm);
    int rank = c ? missing_rank(&p->e, c) : -1;
    uint32_t pid;

    if (rank < 0 || (p->looked_ms && waited_ms - p->looked_ms < LOOK_MS))
        return false;
    bool seated = rank < c->ranks &&
                  memsim_mailbox_seated(&c->box, (uint32_t)rank, &pid);
    uint64_t idle = idle_ms(p, waited_ms);
    if (!seated) {
        c->box.is_full = is_full(c, idle);
        if (c->box.is_full && idle >= SEND_MS)
            say_mismatch(&p->e, c, rank < c->ranks ? rank : -1, place,
                         "did not come");
        return false;
    }
    bool dead = !memsim_peer_lives(pid);
    if (missing_rank(&p->e, c) != rank || (!dead && idle < SEND_MS))
        return false;
    say_mismatch(&p->e, c, rank, place,
                 dead ? "has ended" : "sends nothing and is idle");
    forsake_rank(c, rank);
    return missing_rank(&p->e, c) < 0;
}

static const struct await_kind kind = {
    .complete = exchange_complete, .sleep = wait_for_peers, .give_up = give_up};

/* --- from outside --------------------------------------------------------- */

bool exchange_is_small(const struct exchange *e)
{
    return is_small(e, communicator_get(e->comm));
}

uint64_t exchange_sent(const struct exchange *e)
{
    const struct communicator *c = communicator_get(e->comm);

    return e->send && exchange_sends(e, c) ? letter_bytes(e, c) : 0;
}

uint64_t exchange_received(const struct exchange *e)
{
    const struct communicator *c = communicator_get(e->comm);

    return e->receive && exchange_receives(e, c) ? received_bytes(e, c) : 0;
}

void exchange_post(const struct exchange *e)
{
    struct communicator *c = communicator_get(e->comm);

    if (exchange_sends(e, c))
        post_values(e, c);
}

bool exchange_has_come(struct exchange_wait *w, uint64_t waited_ms)
{
    struct communicator *c = communicator_get(w->e.comm);

    if (!c || !exchange_receives(&w->e, c) || missing_rank(&w->e, c) < 0)
        return true;
    if (!c->box.is_full)
        c->box.is_full = is_full(c, 0);
    return missing_rank(&w->e, c) < 0 || give_up(w, waited_ms, "");
}

void exchange_take(const struct exchange *e)
{
    const struct communicator *c = communicator_get(e->comm);

    pthread_mutex_lock(&lock);
    if (c)
        carry_out(e, c);
    pthread_mutex_unlock(&lock);
}

void exchange_sleep(const struct exchange_wait *w, unsigned ms)
{
    const struct communicator *c = communicator_get(w->e.comm);

    if (c)
        memsim_mailbox_sleep(&c->box, ms);
}

void exchange_begin(const struct exchange *e)
{
    struct communicator *c = communicator_get(e->comm);
    struct exchange_wait pending = {.e = *e};
    uint64_t bytes = received_bytes(e, c);

    if (!e->share || !e->count)
        return;
    if (!is_small(e, c)) {
        if (exchange_receives(e, c) && e->receive)
            nccl_gpu_forget(e->receive, bytes);
        return;
    }
    if (exchange_sends(e, c) && e->send)
        post_values(e, c);
    if (!exchange_receives(e, c) || !e->receive)
        return;
    memsim_await_memory(e->receive, bytes);
    if (!c->box.is_full && missing_rank(e, c) >= 0)
        c->box.is_full = is_full(c, 0);
    memsim_stream_awaits(e->stream,
                         memsim_await(&kind, &pending, sizeof pending,
                                      e->receive, bytes, e->in_group));
}

void exchange_end(struct communicator *c)
{
    memsim_await_poll();
    memsim_mailbox_close(&c->box);
}
