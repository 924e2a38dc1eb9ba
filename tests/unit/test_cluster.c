/* SPDX-License-Identifier: Apache-2.0
 * The ranks of a job: collectives joined, and simulated together. */
#include "common/base/range.h"
#include "memsim/collectives/collate.h"
#include "memsim/collectives/comm_align.h"
#include "memsim/time/time_job.h"
#include "memsim/time/timing.h"

#include <math.h>

#include "check.h"
#include "trace_build.h"

#define RANKS 4
#define US    1000
#define MIB   (UINT64_C(1) << 20)

enum { ALL_REDUCE = 1, BROADCAST, SEND, RECV };

static struct gpu gpu;
static struct build traces[RANKS];
static char paths[RANKS][64];
static struct simulation_plan plans[RANKS];
static struct simulation_rank ranks[RANKS];
static struct timing_rank timed[RANKS];

/* Rank RANK of COUNT, with the world's communicator, whose handle is its rank
 * + 1 (handles of processes differ). */
static struct build *start(unsigned rank, unsigned count)
{
    struct build *b = &traces[rank];
    char id[24] = "the world";

    *b = build_start();
    b->time_ns = 1000;
    BUILD(b, PROCESS, .rank = rank, .world_size = count);
    BUILD_TEXT(b, NAME, "ncclAllReduce", .name = ALL_REDUCE);
    BUILD_TEXT(b, NAME, "ncclBroadcast", .name = BROADCAST);
    BUILD_TEXT(b, NAME, "ncclSend", .name = SEND);
    BUILD_TEXT(b, NAME, "ncclRecv", .name = RECV);
    build_put_bytes(b, TRACE_COMMUNICATOR, id, sizeof id,
                    TRACE_WORDS(COMMUNICATOR, .communicator = rank + 1,
                                .rank = rank, .ranks = count),
                    TRACE_WORD_COUNT(COMMUNICATOR));
    return b;
}

static void collective(struct build *b, unsigned rank, unsigned count,
                       uint64_t name, uint64_t bytes)
{
    BUILD(b, COLLECTIVE, .name = name, .communicator = rank + 1, .rank = rank,
          .ranks = count, .count = bytes / 4, .type = 7, .bytes = bytes,
          .send = 1, .receive = 1, .stream = 8);
}

static void half(struct build *b, unsigned rank, unsigned peer, bool receive,
                 uint64_t group)
{
    BUILD(b, COLLECTIVE, .name = receive ? RECV : SEND,
          .communicator = rank + 1, .rank = rank, .ranks = 2, .root = peer,
          .bytes = MIB, .send = !receive, .receive = receive, .group = group,
          .stream = 8);
}

static void begin_step(struct build *b)
{
    BUILD(b, PHASE, .phase = TRACE_PHASE_FORWARD);
}

static void end_step(struct build *b)
{
    BUILD(b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    BUILD(b, SET, .address = 1, .bytes = 4096, .stream = 8);
    BUILD(b, PHASE, .phase = TRACE_PHASE_OTHER);
}

static struct comm_job *join(unsigned count)
{
    struct err err = {""};

    CHECK(!gpu_load("h100-sxm-80gb", &gpu, &err));
    for (unsigned i = 0; i < count; i++) {
        strcpy(paths[i], "/tmp/memsim-cluster.XXXXXX");
        int fd = mkstemp(paths[i]);
        CHECK(write(fd, traces[i].data, traces[i].bytes) ==
              (ssize_t)traces[i].bytes);
        close(fd);
        CHECK(!simulation_plan_read(&plans[i], paths[i], SIMULATION_KEEP_WORK,
                                    &err));
        ranks[i] =
            (struct simulation_rank){.path = paths[i], .plan = &plans[i]};
    }
    return simulation_join(ranks, count, NULL);
}

static void simulate(const struct comm_job *job, unsigned count)
{
    const struct simulation_peers peers = {ranks, count, job, 0};
    const struct simulation_options options = {.price = {.gpu = &gpu},
                                               .host_factor = 1};

    timing_read_job(timed, &peers, &options);
    for (unsigned i = 0; i < count; i++)
        CHECK(!timed[i].failed);
}

/* Frees JOB and what was read and simulated of COUNT ranks. */
static void finish(struct comm_job *job, unsigned count)
{
    comm_job_destroy(job);
    for (unsigned i = 0; i < count; i++) {
        timing_fini(&timed[i].timing);
        timed[i] = (struct timing_rank){0};
        simulation_plan_fini(&plans[i]);
        free(traces[i].data);
        traces[i].data = NULL;
        unlink(paths[i]);
    }
}

static uint64_t step_ns(unsigned rank, unsigned step)
{
    return timed[rank].timing.steps[step].duration_ns;
}

/* Two steps of an all-reduce; rank I computes I * LATE_NS longer before it. */
static void all_reduces(unsigned count, uint64_t late_ns)
{
    for (unsigned i = 0; i < count; i++) {
        struct build *b = start(i, count);
        for (unsigned k = 0; k < 2; k++) {
            begin_step(b);
            b->time_ns += 100 * US + i * late_ns;
            collective(b, i, count, ALL_REDUCE, 64 * MIB);
            BUILD(b, SYNC_STREAM, .stream = 8);
            end_step(b);
        }
    }
}

TEST(a_collective_waits_for_the_last_rank)
{
    all_reduces(3, 0);
    struct comm_job *job = join(3);
    simulate(job, 3);
    uint64_t equal_ns = step_ns(0, 1);
    CHECK_UINT(job->mismatch_count, 0);
    CHECK_UINT(job->meets[0].expected, 3);
    finish(job, 3);

    all_reduces(3, 50 * US);
    job = join(3);
    simulate(job, 3);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_UINT(step_ns(i, 1), equal_ns + 100 * US);
        CHECK(!timed[i].timing.stuck);
    }
    const struct timing_step *first = &timed[0].timing.steps[1];
    const struct timing_step *last = &timed[2].timing.steps[1];
    CHECK_UINT(first->peers_ns, 100 * US);
    CHECK_UINT(last->peers_ns, 0);
    const struct timing *t = &timed[0].timing;
    size_t row = 0;
    while (row < t->path_count && strcmp(t->path[row].name, "other ranks"))
        row++;
    CHECK(row < t->path_count && t->path[row].ns == 100 * US);
    CHECK_UINT(first->exposed_comm_ns, last->exposed_comm_ns + 100 * US);
    finish(job, 3);
}

TEST(one_rank_is_simulated_as_alone)
{
    struct simulation_options options = {.price = {.gpu = &gpu},
                                         .host_factor = 1};
    struct timing alone;
    struct err err = {""};

    all_reduces(1, 0);
    struct comm_job *job = join(1);
    CHECK(!timing_read(&alone, paths[0], &options, &err));
    simulate(job, 1);
    CHECK_UINT(timed[0].timing.end_ns, alone.end_ns);
    CHECK_UINT(step_ns(0, 1), alone.steps[1].duration_ns);
    timing_fini(&alone);
    finish(job, 1);
}

/* How far the band of a step of COUNT ranks goes above it: 64 GiB are set, and a
 * little is reduced. */
static double band_above(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct build *b = start(i, count);
        begin_step(b);
        BUILD(b, SET, .address = 1, .bytes = UINT64_C(64) << 30, .stream = 8);
        collective(b, i, count, ALL_REDUCE, MIB / 64);
        BUILD(b, SYNC_STREAM, .stream = 8);
        end_step(b);
    }
    struct comm_job *job = join(count);
    simulate(job, count);
    const struct timing_step *step = &timed[0].timing.steps[0];
    double above = (double)step->high_ns / (double)step->duration_ns - 1;
    finish(job, count);
    return above;
}

TEST(a_step_of_several_ranks_has_a_wider_band)
{
    double alone = band_above(1), many = band_above(2);

    CHECK(many > alone + 0.002);
    CHECK_NEAR(many, hypot(alone, 0.06), 0.001);
}

TEST(a_send_waits_for_its_receive)
{
    for (unsigned i = 0; i < 2; i++) {
        struct build *b = start(i, 2);
        for (unsigned k = 0; k < 2; k++) {
            begin_step(b);
            b->time_ns += 100 * US + i * 70 * US;
            half(b, i, 1 - i, i == 0, 0);
            BUILD(b, SYNC_STREAM, .stream = 8);
            end_step(b);
        }
    }
    struct comm_job *job = join(2);
    CHECK_UINT(job->meet_count, 4);
    CHECK_UINT(job->pair_count, 4);
    CHECK(job->meets[0].neighbour);
    simulate(job, 2);
    CHECK_UINT(step_ns(0, 1), step_ns(1, 1));
    CHECK_UINT(timed[0].timing.steps[1].bubble_ns, 70 * US);
    CHECK_UINT(timed[1].timing.steps[1].bubble_ns, 0);
    finish(job, 2);
}

TEST(both_ways_in_one_group)
{
    for (unsigned i = 0; i < 2; i++) {
        struct build *b = start(i, 2);
        half(b, i, 1 - i, false, 5);
        BUILD(b, EVENT_RECORD, .stream = 0, .event = 9); /* as PyTorch does */
        BUILD(b, STREAM_WAIT, .stream = 8, .event = 9);
        half(b, i, 1 - i, true, 5);
        begin_step(b);
        end_step(b);
    }
    struct comm_job *job = join(2);
    CHECK_UINT(job->meet_count, 2);
    CHECK_UINT(job->pair_count, 2); /* both ways are one exchange */
    CHECK_UINT(job->pairs[0].bytes, 2 * MIB);
    CHECK_UINT(job->pairs[0].whole, 2 * MIB);
    CHECK_UINT(job->mismatch_count, 0);
    simulate(job, 2);
    CHECK(!timed[0].timing.stuck);
    finish(job, 2);
}

/* Rank 1 exchanges with 0 and 2, which comes late: 0 waits for 1 alone. */
TEST(what_comes_late_delays_its_own_peers)
{
    for (unsigned i = 0; i < 3; i++) {
        struct build *b = start(i, 3);
        for (unsigned k = 0; k < 2; k++) {
            begin_step(b);
            b->time_ns += 100 * US + (i == 2) * 5000 * US;
            if (i > 0)
                half(b, i, i - 1, true, 1 + k);
            if (i < 2)
                half(b, i, i + 1, false, 1 + k);
            BUILD(b, SYNC_STREAM, .stream = 8);
            end_step(b);
        }
    }
    struct comm_job *job = join(3);
    CHECK_UINT(job->meet_count, 6);
    simulate(job, 3);
    CHECK(step_ns(0, 0) < 1000 * US);
    CHECK(step_ns(1, 0) > 5000 * US);
    CHECK(step_ns(2, 0) > 5000 * US);
    finish(job, 3);
}

/* Two stages of two ranks, of which 0 and 3 run, each for its stage: the
 * pairs {0, 2} and {1, 3}. */
TEST(ranks_that_stand_for_others_meet)
{
    uint32_t stands[] = {0, 0, 3, 3};
    const struct comm_classes classes = {stands, 4};
    const struct comm_log *logs[2];

    for (unsigned i = 0; i < 2; i++) {
        struct build *b = start(i ? 3 : 0, 4);
        struct {
            char id[24];
            struct range range;
        } text = {.range = {i, 2, 2}};
        text.id[0] = (char)(1 + i);
        build_put_bytes(b, TRACE_COMMUNICATOR, &text, sizeof text,
                        TRACE_WORDS(COMMUNICATOR, .communicator = 1 + i,
                                    .rank = i, .ranks = 2, .ranges = 1),
                        TRACE_WORD_COUNT(COMMUNICATOR));
        half(b, i, 1 - i, i == 1, 0);
        if (i)
            traces[1] = *b;
    }
    struct comm_job *alone = join(2);
    for (unsigned i = 0; i < 2; i++)
        logs[i] = &plans[i].comms;
    struct comm_job *job = comm_job_create(logs, 2, &classes);
    CHECK_UINT(job->meet_count, 2);
    CHECK_UINT(job->meets[0].pair_count, 1);
    CHECK_UINT(job->pairs[0].other, 1);
    CHECK(job->meets_of[0][0] == 0 && job->meets_of[1][0] == 1);
    comm_job_destroy(job);
    job = comm_job_create(logs, 2, NULL);
    CHECK(job->meets_of[0][0] == COMM_NONE);
    comm_job_destroy(job);
    finish(alone, 2);
}

TEST(what_does_not_match_is_found)
{
    struct build *a = start(0, 2), *b = start(1, 2);

    collective(a, 0, 2, ALL_REDUCE, MIB);
    collective(b, 1, 2, ALL_REDUCE, 2 * MIB);
    collective(a, 0, 2, ALL_REDUCE, MIB);
    collective(b, 1, 2, BROADCAST, MIB);
    collective(a, 0, 2, BROADCAST, MIB);
    struct comm_job *job = join(2);
    CHECK_UINT(job->mismatch_count, 3);
    CHECK(job->mismatches[0].fault == COMM_SIZE);
    CHECK(job->mismatches[1].fault == COMM_ORDER);
    CHECK_UINT(job->mismatches[1].sequence, 1);
    CHECK(job->mismatches[2].fault == COMM_MISSING);
    CHECK_UINT(job->mismatches[2].other, 1);
    finish(job, 2);
}

/* The times at which the ends of COUNT calls are. */
static void calls_set(struct comm_call *calls, size_t count, size_t from,
                      int64_t clock_ns)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t n = i + from;
        calls[i] = (struct comm_call){
            .kind = n % 3 ? COMM_ALL_GATHER : COMM_REDUCE_SCATTER,
            .duration_ns = 10 * US,
            .start_ns = (uint64_t)((int64_t)(n * n + 1000) * US + clock_ns)};
    }
}

TEST(profiles_are_aligned)
{
    struct comm_call a[30], b[30];
    int64_t clock_ns;

    calls_set(a, 30, 0, 0);
    calls_set(b, 24, 6, 500 * US); /* begins later, on a clock ahead */
    CHECK(comm_align(a, 30, b, 24, &clock_ns) == 6);
    CHECK(clock_ns == -500 * US);
    CHECK(comm_align(b, 24, a, 30, &clock_ns) == -6);
    CHECK(clock_ns == 500 * US);
    for (size_t i = 0; i < 24; i++)
        b[i].kind = COMM_ALL_REDUCE; /* nothing fits */
    CHECK(comm_align(a, 30, b, 24, &clock_ns) == 0);
}

/* What each rank's all-reduce lasts after the last has come: measured for
 * DURATION_US from START_US on. */
static void lasts(const uint64_t start_us[2], uint64_t duration_us,
                  uint64_t us[2])
{
    for (unsigned rank = 0; rank < 2; rank++) {
        struct build *b = start(rank, 2);
        BUILD(b, MEASURED, .start_ns = start_us[rank] * US,
              .duration_ns = duration_us * US);
        collective(b, rank, 2, ALL_REDUCE, MIB);
        build_seal(b);
    }
    struct comm_job *job = join(2);
    us[0] = job->lasts_of[0][0] / US;
    us[1] = job->lasts_of[1][0] / US;
    finish(job, 2);
}

TEST(ranks_that_ran_one_after_another_did_not_wait)
{
    uint64_t us[2];

    lasts((uint64_t[]){1000, 1030}, 50, us); /* both were there */
    CHECK(us[0] == 20 && us[1] == 50);
    lasts((uint64_t[]){1000, 9000}, 50, us);
    CHECK(us[0] == 50 && us[1] == 50);
}

TEST(a_rank_that_never_comes_leaves_the_others_stuck)
{
    struct build *a = start(0, 2);

    start(1, 2);
    begin_step(a);
    half(a, 0, 1, false, 0);
    BUILD(a, SYNC_STREAM, .stream = 8);
    collective(a, 0, 2, ALL_REDUCE, MIB);
    end_step(a);
    struct comm_job *job = join(2);
    CHECK_UINT(job->mismatch_count, 2);
    simulate(job, 2);
    finish(job, 2);
}

TEST(a_rank_that_has_ended_is_named)
{
    struct build *a = start(0, 2);

    start(1, 2);
    collective(a, 0, 2, ALL_REDUCE, MIB);
    BUILD(&traces[1], END, .reason = TRACE_END_EXIT, .status = 0);
    struct comm_job *job = join(2);
    const struct comm_log *logs[] = {&plans[0].comms, &plans[1].comms};
    struct collation *c = collation_create(job, logs);
    CHECK_UINT(c->count, 1);
    CHECK(c->faults[0].fault == COMM_MISSING);
    CHECK(!logs[0]->ended && logs[1]->ended);
    collation_tell_ended(c, logs[0]); /* nobody waits for it */
    CHECK(c->faults[0].fault == COMM_MISSING);
    collation_tell_ended(c, logs[1]);
    collation_tell_ended(c, logs[1]);
    CHECK(c->faults[0].fault == COMM_ENDED && collation_has_missing(c));
    CHECK(!strncmp(c->faults[0].text,
                   "rank 1 ended with status 0 while rank 0 waits for it: "
                   "call 0 on a communicator of 2 ranks: rank 0 calls "
                   "ncclAllReduce of 1048576 bytes",
                   60));
    collation_drop_waits(c, 1);
    CHECK_UINT(c->count, 0);
    collation_destroy(c);
    finish(job, 2);
}

/* COUNT ranks send to the next one and receive from the one before; those of
 * an odd number receive first where they are ORDERED. */
static void ring(unsigned count, bool ordered)
{
    for (unsigned i = 0; i < count; i++) {
        struct build *b = start(i, count);
        bool receives_first = ordered && i % 2;
        unsigned next = (i + 1) % count, last = (i + count - 1) % count;
        half(b, i, receives_first ? last : next, receives_first, 0);
        half(b, i, receives_first ? next : last, !receives_first, 0);
        BUILD(b, SYNC_STREAM, .stream = 8);
    }
}

TEST(a_ring_of_sends_never_ends)
{
    ring(3, false);
    struct comm_job *job = join(3);
    CHECK_UINT(job->mismatch_count, 0); /* the calls do match */
    simulate(job, 3);
    for (unsigned i = 0; i < 3; i++) {
        CHECK(timed[i].timing.stuck);
        CHECK_UINT(timed[i].timing.stuck_place, 0); /* the send */
    }
    const struct comm_log *log = &plans[1].comms;
    struct collation *c = collation_create(job, &log);
    collation_add_endless(c, log, 0);
    CHECK_UINT(c->count, 1);
    CHECK(c->faults[0].fault == COMM_ENDLESS && !collation_has_missing(c));
    CHECK_STR(c->faults[0].text,
              "deadlock: rank 1 waits for ever in ncclSend of 1048576 "
              "bytes, int8; it sends to rank 2");
    CHECK_UINT(c->faults[0].other_rank, 2);
    collation_drop_waits(c, 0);
    CHECK_UINT(c->count, 1);
    collation_drop_waits(c, 2); /* it failed: no fault of rank 1's */
    CHECK_UINT(c->count, 0);
    collation_destroy(c);
    finish(job, 3);
}

TEST(a_ring_whose_odd_ranks_receive_first_ends)
{
    ring(4, true);
    struct comm_job *job = join(4);
    simulate(job, 4);
    for (unsigned i = 0; i < 4; i++) {
        CHECK(!timed[i].timing.stuck);
        CHECK(timed[i].timing.stuck_place == SIMULATION_NO_PLACE);
    }
    finish(job, 4);
}

/* Rank 0 makes a communicator of two, of the members that are TOLD, and
 * receives; rank 1 does not make it. */
static struct comm_job *absent(unsigned world, bool told)
{
    struct {
        char id[24];
        struct range range;
    } text = {"the pair", {0, 2, 1}};

    for (unsigned i = 0; i < 2; i++)
        start(i, world);
    build_put_bytes(&traces[0], TRACE_COMMUNICATOR, (const char *)&text,
                    told ? sizeof text : sizeof text.id,
                    TRACE_WORDS(COMMUNICATOR, .communicator = 77, .ranks = 2,
                                .ranges = told),
                    TRACE_WORD_COUNT(COMMUNICATOR));
    BUILD(&traces[0], COLLECTIVE, .name = RECV, .communicator = 77, .ranks = 2,
          .root = 1, .bytes = MIB, .receive = 1, .stream = 8);
    return join(2);
}

TEST(a_rank_that_never_makes_a_communicator_is_missing)
{
    struct comm_job *job = absent(4, true);

    CHECK_UINT(job->mismatch_count, 1);
    CHECK(job->mismatches[0].fault == COMM_MISSING);
    CHECK_UINT(job->mismatches[0].other, 1);
    finish(job, 2);
    job = absent(4, false); /* the other one may be a rank that did not run */
    CHECK_UINT(job->mismatch_count, 0);
    finish(job, 2);
    job = absent(2, false);
    CHECK_UINT(job->mismatch_count, 1);
    finish(job, 2);
}

/* --- timelines ------------------------------------------------------------ */

static void count_op(void *context, const struct simulation_op *op)
{
    (void)op;
    ++*(size_t *)context;
}

static void check_log(const struct time_log *log, uint32_t rank, uint32_t step,
                      size_t ops)
{
    CHECK(log);
    CHECK_UINT(log->op_count, ops);
    CHECK_UINT(log->simulation.steps.count, 2);
    const struct simulation_moment *begin = &log->simulation.begins[step];
    const struct simulation_moment *end = &log->simulation.ends[step];
    CHECK_UINT(end->ns - begin->ns, step_ns(rank, step));
}

TEST(one_simulation_gives_all_timelines_of_all_ranks)
{
    const struct simulation_options options = {.price = {.gpu = &gpu},
                                               .host_factor = 1};
    struct time_want wants[2] = {{.whole = true, .one = true, .step = 1},
                                 {.one = true, .step = 0}};
    size_t counts[2] = {0, 0};
    const struct simulation_sink sink = {.op = count_op, .context = &counts[0]};

    all_reduces(2, 30 * US);
    struct comm_job *job = join(2);
    const struct simulation_peers peers = {ranks, 2, job, 0};
    simulate(job, 2);
    wants[0].sink = &sink;
    time_job_read(wants, &peers, &options);
    CHECK_UINT(counts[0], 4); /* two steps of a collective and a set */
    check_log(wants[0].whole_log, 0, 0, 4);
    check_log(wants[0].one_log, 0, 1, 2);
    check_log(wants[1].one_log, 1, 0, 2);
    CHECK(!wants[1].whole_log);
    CHECK_UINT(wants[0].result.ops, 4);
    time_job_fini(wants, 2);
    finish(job, 2);
}

TEST(nothing_is_simulated_where_nothing_is_wanted)
{
    const struct simulation_options options = {.price = {.gpu = &gpu},
                                               .host_factor = 1};
    struct time_want wants[2] = {{.whole = false}};

    all_reduces(2, 0);
    struct comm_job *job = join(2);
    const struct simulation_peers peers = {ranks, 2, job, 0};
    time_job_read(wants, &peers, &options);
    CHECK(!wants[0].whole_log && !wants[0].one_log);
    CHECK_UINT(wants[0].result.ops, 0);
    time_job_fini(wants, 2);
    finish(job, 2);
}
