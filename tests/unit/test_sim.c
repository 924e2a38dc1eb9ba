/* SPDX-License-Identifier: Apache-2.0
 * The stream simulator: timelines computed by hand, and random programs
 * against a simulator that goes forward nanosecond by nanosecond. */
#include "runtime/sim/sim.h"

#include <time.h>

#include "check.h"

#define OPS_MAX 4096

static size_t grown_bytes;
static void **blocks; /* simulators have no destructor: these keep their memory
                         within the leak checker's sight */
static size_t block_count;

static void *grow(void *context, void *old, size_t old_bytes, size_t bytes)
{
    (void)context;
    size_t at = 0;

    while (old && at < block_count && blocks[at] != old)
        at++;
    if (!old)
        at = block_count++;
    char *p = realloc(old, bytes ? bytes : 1);
    if (!old)
        blocks = realloc(blocks, block_count * sizeof *blocks);
    blocks[at] = p;
    grown_bytes += bytes;
    if (bytes > old_bytes)
        memset(p + old_bytes, 0, bytes - old_bytes);
    return p;
}

static const struct sim_memory memory = {.grow = grow};

/* What the sink was given, by tag. */
static struct sim_done done[OPS_MAX];
static struct sim_marked marks[16];

static void take_done(void *context, const struct sim_done *d)
{
    (void)context;
    done[d->tag] = *d;
}

static void take_mark(void *context, const struct sim_marked *m)
{
    (void)context;
    marks[m->tag] = *m;
}

static const struct sim_sink sink = {.done = take_done, .marked = take_mark};
static const struct sim_gpu plain = {.queue_depth = 1024};

/* A simulator with one device and one host thread. */
static struct sim *start(const struct sim_gpu *gpu)
{
    struct sim *s = sim_create(&memory, &sink);

    memset(done, 0, sizeof done);
    memset(marks, 0, sizeof marks);
    sim_device(s, gpu);
    sim_thread(s);
    return s;
}

static void work_on(struct sim *s, uint32_t stream, uint64_t tag,
                    enum sim_engine engine, uint64_t ns, uint32_t share)
{
    CHECK(!sim_submit(s, 0, stream,
                      &(struct sim_work){.engine = engine,
                                         .duration_ns = ns,
                                         .share = share,
                                         .meet = SIM_NONE,
                                         .tag = tag}));
}

static void kernel(struct sim *s, uint32_t stream, uint64_t tag, uint64_t ns)
{
    work_on(s, stream, tag, SIM_COMPUTE, ns, 0);
}

#define CHECK_SPAN(tag, start_, end_)                                          \
    do {                                                                       \
        CHECK_UINT(done[tag].start_ns, start_);                                \
        CHECK_UINT(done[tag].end_ns, end_);                                    \
    } while (0)

TEST(a_stream_is_a_queue)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    kernel(s, a, 1, 100);
    sim_spend(s, 0, 10);
    kernel(s, a, 2, 50);
    sim_spend(s, 0, 500); /* it is late */
    kernel(s, a, 3, 7);
    CHECK(sim_drain(s));
    CHECK_SPAN(1, 0, 100);
    CHECK_SPAN(2, 100, 150);
    CHECK_SPAN(3, 510, 517);
    CHECK(done[2].cause == SIM_BY_STREAM && done[2].cause_tag == 1);
    CHECK(done[3].cause == SIM_BY_HOST && done[3].before_tag == 2);
}

/* 2^48 ns are 3.3 days. */
TEST(work_of_days_ends)
{
    const uint64_t days = UINT64_C(1) << 52;
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    kernel(s, a, 1, days);
    kernel(s, b, 2, 3 * days); /* they share the GPU */
    CHECK(sim_drain(s));
    CHECK_SPAN(1, 0, 2 * days);
    CHECK_SPAN(2, 0, 4 * days);
    sim_spend(s, 0, UINT64_MAX - 100); /* behind the last time */
    kernel(s, a, 3, 1000);
    sim_drain(s);
}

/* Each event looks at all streams that have work: these must not pile up. */
TEST(a_stream_for_each_kernel_takes_no_longer)
{
    struct sim *s = start(&plain);

    for (uint64_t i = 0; i < 20000; i++) {
        uint32_t stream = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
        kernel(s, stream, i % OPS_MAX, 100);
        sim_spend(s, 0, 200);
    }
    struct timespec t;
    CHECK(sim_drain(s));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    CHECK_SPAN(19999 % OPS_MAX, 19999 * 200, 19999 * 200 + 100);
    CHECK(t.tv_sec < 5); /* quadratic: 30 s */
}

TEST(a_gap_lies_between_operations)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    for (uint64_t i = 1; i <= 3; i++)
        sim_submit(s, 0, a,
                   &(struct sim_work){.engine = SIM_COMPUTE,
                                      .duration_ns = 100,
                                      .gap_ns = 9,
                                      .meet = SIM_NONE,
                                      .tag = i});
    sim_drain(s);
    CHECK_SPAN(1, 0, 100);
    CHECK_SPAN(2, 109, 209);
    CHECK_SPAN(3, 218, 318);
}

TEST(two_kernels_that_fill_the_gpu_share_it)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    kernel(s, a, 1, 100);
    kernel(s, b, 2, 300);
    sim_drain(s);
    CHECK_SPAN(1, 0, 200); /* half speed both */
    CHECK_SPAN(2, 0, 400); /* 200 left at 200 */
}

TEST(small_kernels_run_side_by_side)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    work_on(s, a, 1, SIM_COMPUTE, 100, SIM_WHOLE / 4);
    work_on(s, b, 2, SIM_COMPUTE, 300, SIM_WHOLE / 2);
    sim_drain(s);
    CHECK_SPAN(1, 0, 100);
    CHECK_SPAN(2, 0, 300);
}

TEST(a_stream_of_higher_priority_takes_what_it_can)
{
    struct sim *s = start(&plain);
    uint32_t low = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t high = sim_stream(s, 0, SIM_NON_BLOCKING, -1);

    kernel(s, low, 1, 100);
    sim_spend(s, 0, 40);
    kernel(s, high, 2, 50);
    sim_drain(s);
    CHECK_SPAN(2, 40, 90);
    CHECK_SPAN(1, 0, 150);
}

TEST(an_event_orders_two_streams)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, 0, SIM_NON_BLOCKING, 0), e = sim_event(s);

    kernel(s, a, 1, 100);
    sim_record(s, 0, a, e);
    kernel(s, a, 2, 100);
    sim_wait_event(s, 0, b, e);
    sim_record(s, 0, a, e); /* recorded anew: the wait is for the old one */
    kernel(s, b, 3, 10);
    sim_drain(s);
    CHECK_UINT(done[3].start_ns, 100);
    CHECK(done[3].cause == SIM_BY_EVENT);
    CHECK_UINT(done[3].event_tag, 1);
    CHECK_UINT(done[3].cause_tag, 1);
    CHECK_UINT(sim_event_ns(s, e), done[2].end_ns);
}

TEST(a_wait_for_an_event_that_was_never_recorded_is_none)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0), e = sim_event(s);

    sim_wait_event(s, 0, a, e);
    kernel(s, a, 1, 10);
    CHECK(sim_drain(s));
    CHECK_SPAN(1, 0, 10);
    CHECK(sim_event_done(s, e, 0));
}

TEST(the_legacy_stream_and_blocking_streams_wait_for_each_other)
{
    struct sim *s = start(&plain);
    uint32_t legacy = sim_stream(s, 0, SIM_LEGACY, 0);
    uint32_t a = sim_stream(s, 0, SIM_BLOCKING, 0);
    uint32_t free_one = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    work_on(s, a, 1, SIM_COMPUTE, 100, 1);
    work_on(s, legacy, 2, SIM_COMPUTE, 50, 1);
    work_on(s, a, 3, SIM_COMPUTE, 10, 1);
    work_on(s, free_one, 4, SIM_COMPUTE, 10, 1);
    sim_drain(s);
    CHECK_SPAN(2, 100, 150);
    CHECK_SPAN(3, 150, 160);
    CHECK_SPAN(4, 0, 10);
}

TEST(the_host_waits_for_streams_events_and_devices)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, 0, SIM_NON_BLOCKING, 0), e = sim_event(s);

    work_on(s, a, 1, SIM_COMPUTE, 100, 1);
    sim_record(s, 0, a, e);
    work_on(s, a, 2, SIM_COMPUTE, 100, 1);
    work_on(s, b, 3, SIM_COMPUTE, 500, 1);
    CHECK(!sim_event_done(s, e, 99));
    CHECK(sim_event_done(s, e, 100));
    sim_sync_event(s, 0, e);
    CHECK(!sim_settle(s, 0));
    CHECK_UINT(sim_now(s, 0), 100);
    sim_sync_stream(s, 0, a);
    CHECK(sim_waits(s, 0));
    CHECK(sim_submit(s, 0, a, &(struct sim_work){.meet = SIM_NONE}) == -1);
    CHECK(!sim_settle(s, 0));
    CHECK_UINT(sim_now(s, 0), 200);
    CHECK_UINT(sim_woken_by(s, 0), 2);
    sim_sync_device(s, 0, 0);
    CHECK(!sim_settle(s, 0));
    CHECK_UINT(sim_now(s, 0), 500);
    sim_sync_device(s, 0, 0); /* nothing to wait for */
    CHECK(!sim_waits(s, 0));
    CHECK_UINT(sim_woken_by(s, 0), 0);
}

TEST(a_host_that_runs_ahead_of_a_full_queue_waits)
{
    struct sim *s = start(&(struct sim_gpu){.queue_depth = 2});
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    for (uint64_t i = 1; i <= 4; i++) {
        kernel(s, a, i, 100);
        CHECK(!sim_settle(s, 0));
    }
    CHECK_UINT(sim_now(s, 0), 200); /* 3 and 4 are in the queue */
    sim_drain(s);
    CHECK_SPAN(4, 300, 400);
}

TEST(copy_engines_do_one_copy_at_a_time)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    work_on(s, b, 1, SIM_COPY_IN, 100, 0);
    sim_spend(s, 0, 1);
    work_on(s, a, 2, SIM_COPY_IN, 100, 0);
    work_on(s, a, 3, SIM_COPY_OUT, 50, 0);
    sim_drain(s);
    CHECK_SPAN(1, 0, 100);
    CHECK_SPAN(2, 100, 200);
    CHECK_SPAN(3, 200, 250);
    CHECK(done[2].cause == SIM_BY_ENGINE && done[2].cause_tag == 1);
}

TEST(a_collective_and_a_copy_slow_compute_down)
{
    struct sim *s = start(&(struct sim_gpu){.queue_depth = 9,
                                            .comm_takes = SIM_WHOLE / 4,
                                            .copy_takes = SIM_WHOLE / 4,
                                            .comm_loses = SIM_WHOLE / 2});
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    kernel(s, a, 1, 300);
    work_on(s, b, 2, SIM_COMM, 100, 0);
    work_on(s, b, 3, SIM_COPY_IN, 100, 0);
    sim_mark(s, 0, 0, 1);
    sim_drain(s);
    CHECK_SPAN(2, 0, 200);   /* at half speed */
    CHECK_SPAN(3, 200, 300); /* kernel 1 has 150 left, then 75 */
    CHECK_SPAN(1, 0, 375);
    CHECK_UINT(marks[1].ns, 375);
    CHECK_UINT(marks[1].use_ns[SIM_USE_COMPUTE_COMM], 200);
    CHECK_UINT(marks[1].use_ns[SIM_USE_COMPUTE_COPY], 100);
    CHECK_UINT(marks[1].use_ns[SIM_USE_COMPUTE], 75);
}

TEST(a_small_kernel_beside_a_collective_keeps_its_speed)
{
    struct sim *s =
        start(&(struct sim_gpu){.queue_depth = 9, .comm_takes = SIM_WHOLE / 4});
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    work_on(s, a, 1, SIM_COMPUTE, 300, SIM_WHOLE / 2);
    work_on(s, b, 2, SIM_COMM, 100, 0);
    sim_drain(s);
    CHECK_SPAN(1, 0, 300);
    CHECK_SPAN(2, 0, 100);
}

TEST(a_collective_starts_with_its_last_peer)
{
    struct sim *s = start(&plain);
    uint32_t other = sim_device(s, &plain), host = sim_thread(s);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, other, SIM_NON_BLOCKING, 0);
    uint32_t meet = sim_meet(s, 2);
    struct sim_work work = {
        .engine = SIM_COMM, .duration_ns = 100, .meet = meet, .tag = 1};

    sim_submit(s, 0, a, &work);
    sim_sync_stream(s, 0, a);
    CHECK(sim_waits(s, 0));
    CHECK(sim_settle(s, 0) == -1); /* the peer is missing */
    sim_spend(s, host, 70);
    work.tag = 2;
    work.duration_ns = 130; /* the slowest decides */
    sim_submit(s, host, b, &work);
    sim_mark(s, 0, 0, 1);
    CHECK(!sim_settle(s, 0));
    CHECK_UINT(sim_now(s, 0), 200);
    CHECK(sim_drain(s));
    CHECK_SPAN(1, 70, 200);
    CHECK_SPAN(2, 70, 200);
    CHECK(done[1].cause == SIM_BY_PEER && done[1].cause_tag == 2);
    CHECK_UINT(marks[1].use_ns[SIM_USE_PEERS], 70);
    CHECK_UINT(marks[1].use_ns[SIM_USE_COMM], 130);
    CHECK_UINT(sim_meet(s, 3), meet); /* given again */
}

/* An operation of DEVICE that comes at NS and lasts 100 ns; tag: DEVICE + 1. */
static void exchange(struct sim *s, uint32_t device, uint32_t host,
                     uint32_t meet, uint64_t ns)
{
    struct sim_work work = {.engine = SIM_COMM,
                            .duration_ns = 100,
                            .neighbour = true,
                            .meet = meet,
                            .tag = device + 1};

    sim_until(s, host, ns);
    sim_submit(s, host, sim_stream(s, device, SIM_NON_BLOCKING, 0), &work);
}

TEST(an_exchange_goes_on_with_the_peers_that_have_come)
{
    struct sim *s = start(&plain);
    uint32_t meets[3], hosts[3] = {0};

    for (uint32_t i = 0; i < 3; i++) {
        meets[i] = sim_meet(s, 1);
        hosts[i] = i ? sim_thread(s) : 0;
        if (i)
            sim_device(s, &plain);
    }
    /* 0 and 2 have to do with 1 alone, 1 with each a half. */
    sim_pair(s, meets[1], SIM_WHOLE / 2, meets[0], SIM_WHOLE);
    sim_pair(s, meets[1], SIM_WHOLE / 2, meets[2], SIM_WHOLE);
    exchange(s, 0, hosts[0], meets[0], 0);
    exchange(s, 1, hosts[1], meets[1], 20);
    exchange(s, 2, hosts[2], meets[2], 500);
    sim_mark(s, 0, 0, 1);
    sim_mark(s, 1, 0, 2);
    CHECK(sim_drain(s));
    CHECK_SPAN(1, 20, 120);
    CHECK_SPAN(2, 20, 550);
    CHECK_SPAN(3, 500, 600);
    CHECK(done[1].cause == SIM_BY_PEER && done[1].cause_tag == 2);
    CHECK_UINT(marks[1].use_ns[SIM_USE_BUBBLE], 20);
    CHECK_UINT(marks[2].use_ns[SIM_USE_BUBBLE], 430);
    CHECK_UINT(marks[2].use_ns[SIM_USE_COMM], 100);
}

/* Work of no duration is not over before its peer has come; numbers are given
 * again, with no pair of before. */
TEST(an_exchange_waits_for_all_its_peers)
{
    struct sim *s = start(&plain);
    uint32_t other = sim_device(s, &plain), host = sim_thread(s);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    uint32_t b = sim_stream(s, other, SIM_NON_BLOCKING, 0);
    struct sim_work work = {.engine = SIM_COMM, .tag = 1};
    uint64_t bytes = 0;

    for (int round = 0; round < 100; round++) {
        work.meet = sim_meet(s, 1);
        uint32_t meet = sim_meet(s, 1);
        sim_pair(s, work.meet, 1, meet, SIM_WHOLE);
        sim_submit(s, 0, a, &work);
        CHECK(!sim_drain(s));
        sim_spend(s, host, 70);
        sim_submit(
            s, host, b,
            &(struct sim_work){.engine = SIM_COMM, .meet = meet, .tag = 2});
        CHECK(sim_drain(s));
        CHECK_SPAN(1, sim_now(s, host), sim_now(s, host));
        bytes = round ? bytes : grown_bytes;
    }
    CHECK_UINT(grown_bytes, bytes);
}

TEST(idle_time_is_told_apart)
{
    struct sim *s = start(&plain);
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);

    kernel(s, a, 1, 100);
    sim_sync_stream(s, 0, a);
    sim_settle(s, 0);
    sim_spend(s, 0, 40); /* the GPU waits for the host */
    sim_submit(s, 0, a,
               &(struct sim_work){.engine = SIM_COMPUTE,
                                  .duration_ns = 10,
                                  .meet = SIM_NONE,
                                  .tag = 2});
    sim_submit(s, 0, a,
               &(struct sim_work){.engine = SIM_COMPUTE,
                                  .duration_ns = 10,
                                  .gap_ns = 5, /* for itself */
                                  .meet = SIM_NONE,
                                  .tag = 3});
    sim_mark(s, 0, 180, 1);
    sim_drain(s);
    CHECK_UINT(marks[1].ns, 180);
    CHECK_UINT(marks[1].use_ns[SIM_USE_COMPUTE], 120);
    CHECK_UINT(marks[1].use_ns[SIM_USE_HOST], 40 + 15);
    CHECK_UINT(marks[1].use_ns[SIM_USE_IDLE], 5);
}

TEST(memory_is_taken_only_while_queues_grow)
{
    struct sim *s = start(&(struct sim_gpu){.queue_depth = 16});
    uint32_t a = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    size_t warm = 0;

    for (uint64_t i = 1; i < 4000; i++) {
        kernel(s, a, i, 100);
        sim_settle(s, 0);
        sim_mark(s, 0, 0, 1);
        if (i == 100)
            warm = grown_bytes;
    }
    CHECK_UINT(grown_bytes, warm);
}

/* --- against a naive simulator -------------------------------------------- */

#define STREAMS 4
#define EVENTS  3

enum kind { KERNEL, COPY, COMM, RECORD, WAIT, KINDS };

/* An operation of the naive simulator. */
struct naive {
    enum kind kind;
    uint64_t called, duration, gap, left, start, end;
    uint64_t ready; /* when it could have started; UINT64_MAX: not yet */
    uint32_t share;
    int wait; /* of WAIT: the index of the record; -1: none */
    bool running, over;
};

struct naive_stream {
    struct naive ops[300];
    size_t count, head;
    uint64_t free_ns;
    bool used;
};

static const struct sim_gpu shared = {.queue_depth = 1024,
                                      .comm_takes = 9000,
                                      .copy_takes = 1000,
                                      .comm_loses = 20000};

static struct naive_stream naive[STREAMS];
static int record_stream[300], record_index[300];

static bool naive_ready(const struct naive_stream *q, const struct naive *op,
                        uint64_t t)
{
    if (op->called > t)
        return false;
    if (op->kind == WAIT && op->wait >= 0)
        return naive[record_stream[op->wait]].head >
               (size_t)record_index[op->wait];
    if (op->kind == RECORD || op->kind == WAIT)
        return true;
    return !q->used || q->free_ns + op->gap <= t;
}

/* May OP, a copy that is ready, start? None runs, none was ready earlier. */
static bool copy_may_start(const struct naive *op, uint64_t t)
{
    for (int i = 0; i < STREAMS; i++) {
        const struct naive_stream *q = &naive[i];
        const struct naive *o = &q->ops[q->head];
        if (q->head == q->count || o->kind != COPY || o == op)
            continue;
        if (o->running || (o->ready <= t && o->ready < op->ready))
            return false;
    }
    return true;
}

static void naive_note_ready(uint64_t t)
{
    for (int i = 0; i < STREAMS; i++) {
        struct naive_stream *q = &naive[i];
        struct naive *op = &q->ops[q->head];
        if (q->head < q->count && op->ready > t && naive_ready(q, op, t))
            op->ready = t;
    }
}

static void naive_pop(struct naive_stream *q, uint64_t t)
{
    struct naive *op = &q->ops[q->head++];

    op->end = t;
    if (op->kind >= RECORD)
        return;
    op->running = false;
    q->free_ns = t;
    q->used = true;
}

/* Ends whatever ends at T, then starts what can. Returns whether anything
 * did. */
static bool naive_change(uint64_t t, bool starts)
{
    bool changed = false;

    naive_note_ready(t);
    for (int i = 0; i < STREAMS; i++) {
        struct naive_stream *q = &naive[i];
        struct naive *op = &q->ops[q->head];
        if (q->head == q->count)
            continue;
        bool timed = op->kind < RECORD;
        bool ready = !op->running && op->ready <= t;
        if (!starts && ((op->running && !op->left) || (ready && !timed))) {
            naive_pop(q, t);
            changed = true;
        }
        if (starts && ready && timed &&
            (op->kind != COPY || copy_may_start(op, t))) {
            op->start = t;
            op->running = true;
            op->left = op->duration * SIM_WHOLE;
            changed = true;
        }
    }
    return changed;
}

static void naive_tick(void)
{
    uint64_t sum = 0, comms = 0, copies = 0, capacity = SIM_WHOLE;

    for (int i = 0; i < STREAMS; i++) {
        struct naive_stream *q = &naive[i];
        const struct naive *op = &q->ops[q->head];
        if (q->head == q->count || !op->running)
            continue;
        sum += op->kind == KERNEL ? op->share : 0;
        comms += op->kind == COMM;
        copies += op->kind == COPY;
    }
    capacity -=
        (comms ? shared.comm_takes : 0) + (copies ? shared.copy_takes : 0);
    for (int i = 0; i < STREAMS; i++) {
        struct naive_stream *q = &naive[i];
        struct naive *op = &q->ops[q->head];
        if (q->head == q->count || !op->running)
            continue;
        uint64_t speed = SIM_WHOLE;
        if (op->kind == KERNEL && sum > capacity)
            speed = SIM_WHOLE * capacity / sum;
        if (op->kind == COMM)
            speed = (sum ? SIM_WHOLE - shared.comm_loses : SIM_WHOLE) / comms;
        op->left -= speed < op->left ? speed : op->left;
    }
}

static bool naive_left(void)
{
    for (int i = 0; i < STREAMS; i++)
        if (naive[i].head < naive[i].count)
            return true;
    return false;
}

static uint64_t seed;

static uint32_t draw(uint32_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(seed >> 33) % below;
}

static struct naive random_op(void)
{
    struct naive op = {.kind = (enum kind)draw(KINDS),
                       .duration = draw(40),
                       .gap = draw(3),
                       .share = draw(3) ? SIM_WHOLE : 1 + draw(SIM_WHOLE),
                       .ready = UINT64_MAX,
                       .wait = -1};

    if (op.kind == COPY || op.kind == COMM)
        op.duration += 1;
    return op;
}

/* The same operation for both. */
static void give(struct sim *s, const uint32_t *streams, int i,
                 struct naive *op, int *records, int *last_of_event)
{
    static const enum sim_engine engines[] = {SIM_COMPUTE, SIM_COPY_IN,
                                              SIM_COMM};
    uint32_t event = draw(EVENTS);
    struct naive_stream *q = &naive[i];

    op->called = sim_now(s, 0);
    if (op->kind == RECORD) {
        record_stream[*records] = i;
        record_index[*records] = (int)q->count;
        last_of_event[event] = (*records)++;
        sim_record(s, 0, streams[i], event);
    } else if (op->kind == WAIT) {
        op->wait = last_of_event[event];
        sim_wait_event(s, 0, streams[i], event);
        if (op->wait < 0)
            return;
    } else {
        CHECK(!sim_submit(
            s, 0, streams[i],
            &(struct sim_work){.engine = engines[op->kind],
                               .duration_ns = op->duration,
                               .gap_ns = (uint32_t)op->gap,
                               .share = op->share,
                               .meet = SIM_NONE,
                               .tag = (uint64_t)i * 300 + q->count + 1}));
    }
    q->ops[q->count++] = *op;
}

static void random_program(struct sim *s, unsigned length)
{
    uint32_t streams[STREAMS];
    int last_of_event[EVENTS] = {-1, -1, -1}, records = 0;

    memset(naive, 0, sizeof naive);
    for (int i = 0; i < STREAMS; i++)
        streams[i] = sim_stream(s, 0, SIM_NON_BLOCKING, 0);
    for (int i = 0; i < EVENTS; i++)
        sim_event(s);
    for (unsigned i = 0; i < length; i++) {
        struct naive op = random_op();
        give(s, streams, (int)draw(STREAMS), &op, &records, last_of_event);
        sim_spend(s, 0, draw(4) ? 0 : draw(50));
        if (!draw(10) && sim_now(s, 0)) /* how far it was run does not matter */
            sim_step(s, sim_now(s, 0) - 1);
    }
}

TEST(random_programs_run_as_nanosecond_by_nanosecond)
{
    for (seed = 1; seed <= 1000; seed++) {
        uint64_t kept = seed;
        struct sim *s = start(&shared);
        random_program(s, 100);
        CHECK(sim_drain(s));
        for (uint64_t t = 0; naive_left() && t < 100000; t++) {
            do {
                while (naive_change(t, false))
                    continue;
            } while (naive_change(t, true));
            naive_tick();
        }
        CHECK(!naive_left());
        for (int i = 0; i < STREAMS; i++)
            for (size_t j = 0; j < naive[i].count; j++) {
                const struct naive *op = &naive[i].ops[j];
                const struct sim_done *d = &done[(size_t)i * 300 + j + 1];
                if (op->kind >= RECORD)
                    continue;
                if (d->start_ns != op->start || d->end_ns != op->end) {
                    CHECK_FAIL("seed %" PRIu64
                               " stream %d op %zu kind %d: %" PRIu64
                               "..%" PRIu64 ", not %" PRIu64 "..%" PRIu64,
                               kept, i, j, op->kind, d->start_ns, d->end_ns,
                               op->start, op->end);
                    return;
                }
            }
        seed = kept;
    }
}

TEST(a_program_runs_the_same_each_time)
{
    static struct sim_done first[OPS_MAX];
    struct sim *s = start(&shared);

    seed = 7;
    random_program(s, 200);
    sim_drain(s);
    memcpy(first, done, sizeof first);
    s = start(&shared);
    seed = 7;
    random_program(s, 200);
    sim_drain(s);
    CHECK(!memcmp(first, done, sizeof first));
}
