/* SPDX-License-Identifier: Apache-2.0
 * Step times from traces: what is on the GPU and on the host's clock. */
#include "memsim/time/timing.h"

#include "check.h"
#include "trace_build.h"

#define COPY_BYTES (UINT64_C(64) << 20)
#define US         1000

static struct gpu gpu;
static char path[64];

static void copy(struct build *b, uint64_t stream, uint64_t blocking)
{
    BUILD(b, COPY, .stream = stream, .direction = TRACE_HOST_TO_DEVICE,
          .bytes = COPY_BYTES, .blocking = blocking);
}

/* A step of the host's: GAP_NS between its calls. */
static void step(struct build *b, unsigned copies, uint64_t gap_ns)
{
    BUILD(b, PHASE, .phase = TRACE_PHASE_FORWARD);
    BUILD(b, MODULE_ENTER, .module = 2);
    for (unsigned i = 0; i < copies; i++) {
        b->time_ns += gap_ns;
        copy(b, 0, 0);
    }
    BUILD(b, MODULE_LEAVE, .module = 2);
    BUILD(b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
    BUILD(b, SET, .address = 1, .bytes = 4096);
    BUILD(b, PHASE, .phase = TRACE_PHASE_OTHER);
}

static struct build start(void)
{
    struct err err = {""};
    struct build b = build_start();

    CHECK(!gpu_load("h100-sxm-80gb", &gpu, &err));
    b.time_ns = 1000;
    BUILD_TEXT(&b, NAME, "Net", .name = 1);
    BUILD_TEXT(&b, NAME, "layer", .name = 2);
    BUILD(&b, MODULE, .module = 1, .name = 1);
    BUILD(&b, MODULE, .module = 2, .root = 1, .name = 2);
    return b;
}

static struct timing read_with(const struct build *b, double host_factor,
                               double copy_scale)
{
    struct simulation_options options = {
        .price = {.gpu = &gpu}, .host_factor = host_factor};
    struct timing t;
    struct err err = {""};

    options.price.scale[WORK_COPY] = copy_scale;
    strcpy(path, "/tmp/memsim-timing.XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, b->data, b->bytes) == (ssize_t)b->bytes);
    close(fd);
    CHECK(!timing_read(&t, path, &options, &err));
    CHECK_STR(err.text, "");
    unlink(path);
    return t;
}

/* What one copy takes on the engine. */
static uint64_t copy_ns(void)
{
    struct build b = start();

    step(&b, 1, 0);
    step(&b, 1, 0);
    struct timing t = read_with(&b, 0, 0);
    uint64_t ns = (uint64_t)t.path[0].ns;
    timing_fini(&t);
    free(b.data);
    return ns;
}

static void check_parts(const struct timing *t)
{
    for (size_t i = 0; i < t->step_count; i++) {
        const struct timing_step *s = &t->steps[i];
        CHECK_UINT(s->compute_ns + s->exposed_comm_ns + s->bubble_ns + s->exposed_copy_ns +
                       s->host_bound_ns + s->other_ns,
                   s->duration_ns);
        CHECK(s->low_ns <= s->duration_ns && s->duration_ns <= s->high_ns);
    }
}

TEST(a_step_of_queued_work_takes_what_the_work_takes)
{
    struct build b = start();
    uint64_t one = copy_ns();

    for (int i = 0; i < 4; i++)
        step(&b, 100, 10 * US);
    struct timing t = read_with(&b, 1, 0);
    CHECK_UINT(t.step_count, 4);
    CHECK(t.steps[0].warm_up && !t.steps[1].warm_up);
    CHECK(one > 500 * US);
    /* 100 copies with a gap of 1 us before each, and the set */
    CHECK_NEAR((double)t.steps[2].duration_ns, 100.0 * (one + US), 1e-3);
    CHECK_NEAR((double)t.steps[2].exposed_copy_ns, 100.0 * one, 1e-3);
    CHECK_NEAR(t.basis[COST_ROOFLINE] + t.basis[COST_FALLBACK], 1, 1e-9);
    check_parts(&t);
    CHECK_UINT(timing_step_ns(&t), t.steps[t.typical].duration_ns);
    timing_fini(&t);
    free(b.data);
}

/* The share of the SMs that had work in the last of three steps on DEVICE. */
static double share_on(uint64_t device)
{
    struct build b = start();

    for (int i = 0; i < 3; i++) {
        BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
        BUILD(&b, SET, .device = device, .address = 1, .bytes = 1 << 30);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
        BUILD(&b, SET, .device = device, .address = 1, .bytes = 4096);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_OTHER);
    }
    struct timing t = read_with(&b, 1, 0);
    double share = t.steps[2].sm_utilization, most = 0;
    for (size_t i = 0; i < t.utilization.count; i++)
        if (t.utilization.windows[i] > most)
            most = t.utilization.windows[i];
    CHECK(most >= share);
    timing_fini(&t);
    free(b.data);
    return share;
}

TEST(the_sms_of_any_gpu_of_a_process_have_work)
{
    CHECK(share_on(0) > 0.5);
    CHECK_NEAR(share_on(3), share_on(0), 1e-9);
}

TEST(a_slow_host_is_what_the_gpu_waits_for)
{
    struct build b = start();
    uint64_t one = copy_ns();

    for (int i = 0; i < 3; i++)
        step(&b, 10, 3 * one);
    struct timing t = read_with(&b, 1, 0);
    CHECK_NEAR((double)t.steps[1].duration_ns, 30.0 * one, 0.01);
    CHECK(t.steps[1].host_bound_ns > t.steps[1].duration_ns / 2);
    CHECK_STR(t.path[0].name, "host");
    check_parts(&t);
    struct timing fast = read_with(&b, 1.0 / 3, 0);
    CHECK(fast.steps[1].duration_ns < t.steps[1].duration_ns / 2);
    struct timing none = read_with(&b, 0, 0);
    CHECK_NEAR((double)none.steps[1].duration_ns, 10.0 * (one + US), 0.01);
    timing_fini(&t);
    timing_fini(&fast);
    timing_fini(&none);
    free(b.data);
}

TEST(the_host_waits_for_blocking_copies)
{
    struct build b = start();
    uint64_t one = copy_ns();

    for (int i = 0; i < 3; i++) {
        step(&b, 1, 0);
        copy(&b, 0, 1);
        b.time_ns += 2 * one; /* the host, with nothing queued */
    }
    struct timing t = read_with(&b, 1, 0);
    CHECK_NEAR((double)t.steps[1].duration_ns, 4.0 * one, 0.05);
    CHECK_NEAR((double)t.steps[1].host_bound_ns, 2.0 * one, 0.05);
    timing_fini(&t);
    free(b.data);
}

TEST(copies_and_other_streams_overlap)
{
    struct build b = start();
    struct build both = start();
    uint64_t one = copy_ns();

    BUILD(&both, STREAM_CREATE, .stream = 0x500, .flags = 1);
    for (int i = 0; i < 3; i++) {
        BUILD(&both, PHASE, .phase = TRACE_PHASE_FORWARD);
        copy(&both, 0, 0);
        BUILD(&both, COPY, .stream = 0x500, .direction = TRACE_DEVICE_TO_HOST,
              .bytes = COPY_BYTES);
        BUILD(&both, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
        BUILD(&both, PHASE, .phase = TRACE_PHASE_OTHER);
    }
    struct timing t = read_with(&both, 0, 0);
    CHECK_NEAR((double)t.steps[1].duration_ns, (double)one, 0.05);
    timing_fini(&t);
    free(b.data);
    free(both.data);
}

TEST(the_same_trace_gives_the_same_nanoseconds)
{
    struct build b = start();

    for (int i = 0; i < 5; i++)
        step(&b, 7, 100 * US + 13);
    struct timing x = read_with(&b, 0.7, 0), y = read_with(&b, 0.7, 0);
    for (size_t i = 0; i < x.step_count; i++)
        CHECK(!memcmp(&x.steps[i], &y.steps[i], sizeof x.steps[i]));
    timing_fini(&x);
    timing_fini(&y);
    free(b.data);
}

TEST(a_step_that_the_host_was_kept_from_is_as_long_as_the_others)
{
    struct build b = start();
    uint64_t one = copy_ns();

    for (int i = 0; i < 5; i++) {
        step(&b, 5, 2 * one);
        if (i == 2)
            b.time_ns += 100 * one; /* something else ran */
        step(&b, 0, 0); /* a step of no call but the set */
    }
    for (int i = 0; i < 5; i++)
        step(&b, 5, i == 3 ? 20 * one : 2 * one);
    struct timing t = read_with(&b, 1, 0);
    CHECK_UINT(t.step_count, 15);
    CHECK_NEAR((double)t.steps[11].duration_ns, 10.0 * one, 0.05);
    CHECK_UINT(t.steps[12].duration_ns, t.steps[11].duration_ns);
    CHECK_UINT(t.steps[13].duration_ns, t.steps[11].duration_ns);
    timing_fini(&t);
    free(b.data);
}

TEST(prices_can_be_scaled)
{
    struct build b = start();

    for (int i = 0; i < 3; i++)
        step(&b, 50, 0);
    struct timing x = read_with(&b, 0, 0), y = read_with(&b, 0, 2);
    CHECK_NEAR((double)y.steps[1].duration_ns,
               2.0 * (double)x.steps[1].duration_ns, 0.01);
    timing_fini(&x);
    timing_fini(&y);
    free(b.data);
}

TEST(time_belongs_to_modules_and_operators)
{
    struct build b = start();

    for (int i = 0; i < 3; i++)
        step(&b, 10, 0);
    struct timing t = read_with(&b, 0, 0);
    CHECK_UINT(t.module_count, 2); /* layer, and Net around it */
    CHECK_NEAR(t.modules[0].ns, t.modules[1].ns, 1e-12);
    CHECK_STR(t.operators[0].name, "copy to the device");
    CHECK_NEAR(t.operators[0].calls, 10, 1e-12);
    CHECK_STR(t.operators[1].name, "memory set");
    double all = t.operators[0].ns + t.operators[1].ns;
    CHECK_NEAR(all, t.device_ns, 1e-9);
    timing_fini(&t);
    free(b.data);
}

TEST(a_trace_without_steps_has_none)
{
    struct build b = start();

    copy(&b, 0, 0);
    struct timing t = read_with(&b, 1, 0);
    CHECK_UINT(t.step_count, 0);
    CHECK_UINT(t.ops, 1);
    CHECK_UINT(timing_step_ns(&t), 0);
    timing_fini(&t);
    free(b.data);
}

TEST(scales_are_read_and_refused)
{
    double scale[WORK_FAMILIES] = {0};
    struct err err = {""};

    CHECK(!price_scale_parse("gemm=0.8,copy=2", scale, &err));
    CHECK_NEAR(scale[WORK_GEMM], 0.8, 0);
    CHECK_NEAR(scale[WORK_COPY], 2, 0);
    CHECK(price_scale_parse("gem=2", scale, &err) == -1);
    CHECK(strstr(err.text, "'gem'"));
    CHECK(price_scale_parse("gemm", scale, &err) == -1);
    CHECK(price_scale_parse("gemm=-1", scale, &err) == -1);
    CHECK(price_scale_parse("gemm=nan", scale, &err) == -1);
}

/* The timing of B as a job of one rank. */
static struct timing read_job(const struct build *b)
{
    const struct simulation_options options = {.price = {.gpu = &gpu},
                                               .host_factor = 1};
    struct simulation_plan plan;
    struct timing_rank timed = {.failed = false};
    struct err err = {""};

    strcpy(path, "/tmp/memsim-timing.XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, b->data, b->bytes) == (ssize_t)b->bytes);
    close(fd);
    CHECK(!simulation_plan_read(&plan, path, SIMULATION_KEEP_WORK, &err));
    const struct simulation_rank rank = {.path = path, .plan = &plan};
    struct comm_job *joined = simulation_join(&rank, 1, NULL);
    timing_read_job(&timed, &(struct simulation_peers){&rank, 1, joined, 0},
                    &options);
    CHECK(!timed.failed);
    comm_job_destroy(joined);
    simulation_plan_fini(&plan);
    unlink(path);
    return timed.timing;
}

static void trace_write(const struct build *b, char *name)
{
    int fd = mkstemp(name);

    CHECK(fd >= 0 && write(fd, b->data, b->bytes) == (ssize_t)b->bytes);
    close(fd);
}

/* Of two ranks, which need not be alike, the slowest with this host is not the
 * one that is with one that keeps up. */
TEST(a_jobs_step_of_a_host_that_keeps_up_is_that_of_its_slowest_rank)
{
    char names[2][64] = {"/tmp/memsim-timing.XXXXXX",
                         "/tmp/memsim-timing.XXXXXX"};
    const struct simulation_options options = {.price = {.gpu = &gpu},
                                               .host_factor = 1};
    struct build b[2] = {start(), start()};
    struct simulation_plan plans[2];
    struct simulation_rank rank[2];
    struct timing_rank timed[2] = {{.failed = false}};
    struct err err = {""};
    uint64_t one = copy_ns();

    for (int i = 0; i < 10; i++) {
        step(&b[0], 10, 9 * one);
        step(&b[1], 20, 0);
    }
    for (int i = 0; i < 2; i++) {
        trace_write(&b[i], names[i]);
        CHECK(!simulation_plan_read(&plans[i], names[i], SIMULATION_KEEP_WORK,
                                    &err));
        rank[i] = (struct simulation_rank){.path = names[i], .plan = &plans[i]};
    }
    struct comm_job *joined = simulation_join(rank, 2, NULL);
    timing_read_job(timed, &(struct simulation_peers){rank, 2, joined, 0},
                    &options);
    CHECK(timing_step_ns(&timed[0].timing) > timing_step_ns(&timed[1].timing));
    for (int i = 0; i < 2; i++) {
        CHECK(!timed[i].failed);
        CHECK_NEAR((double)timed[i].timing.keeps_up_ns, 20.0 * (one + US),
                   0.01);
        timing_fini(&timed[i].timing);
        simulation_plan_fini(&plans[i]);
        unlink(names[i]);
        free(b[i].data);
    }
    comm_job_destroy(joined);
}

TEST(a_host_of_few_steps_is_not_firm)
{
    struct build b = start();
    uint64_t one = copy_ns();

    for (int i = 0; i < 4; i++)
        step(&b, 10, 3 * one);
    struct timing t = read_job(&b);
    CHECK(t.host_steps > 1 && t.host_steps < TIMING_FIRM_STEPS);
    CHECK_NEAR((double)t.keeps_up_ns, 10.0 * (one + US), 0.01);
    CHECK(timing_is_unsure(&t));
    CHECK(t.steps[t.typical].low_ns <= t.keeps_up_ns);
    check_parts(&t);
    timing_fini(&t);
    free(b.data);
}

TEST(a_host_of_many_equal_steps_is_firm)
{
    struct build b = start();
    uint64_t one = copy_ns();

    for (int i = 0; i < 10; i++)
        step(&b, 10, 3 * one);
    struct timing t = read_job(&b);
    CHECK(t.host_steps >= TIMING_FIRM_STEPS);
    CHECK(t.host_spread < 0.01);
    CHECK(t.keeps_up_ns && !timing_is_unsure(&t));
    CHECK(t.steps[t.typical].low_ns > t.keeps_up_ns);
    timing_fini(&t);
    free(b.data);
}

/* A recurrent network's call: the host makes its launches one by one, also
 * where they take the GPU less. */
TEST(a_recurrent_call_takes_the_host_all_its_launches)
{
    static const char text[] =
        "mode=lstm type=float length=100 batch=1 math=plain";
    struct build b = start();

    BUILD_TEXT(&b, NAME, "rnn forward training", .name = 3);
    BUILD_TEXT(&b, NAME, "rnn backward weights", .name = 4);
    for (int i = 0; i < 6; i++) {
        BUILD(&b, PHASE, .phase = TRACE_PHASE_FORWARD);
        BUILD(&b, MODULE_ENTER, .module = 2);
        BUILD_TEXT(&b, LIBRARY_CALL, text, .name = i < 3 ? 4 : 3, .a = 100,
                   .b = 8, .c = 8, .d = 1, .e = 1, .f = 4);
        BUILD(&b, MODULE_LEAVE, .module = 2);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
        BUILD(&b, SET, .address = 1, .bytes = 4096);
        BUILD(&b, PHASE, .phase = TRACE_PHASE_OTHER);
    }
    struct timing t = read_with(&b, 0, 0);
    CHECK_UINT(t.step_count, 6);
    CHECK(t.steps[1].duration_ns < 200 * US);
    CHECK(t.steps[4].duration_ns > 300 * 4 * US);
    CHECK(t.steps[4].duration_ns < 330 * 4 * US);
    check_parts(&t);
    timing_fini(&t);
    free(b.data);
}

static uint64_t dice;

static uint64_t draw(uint64_t below)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice % below;
}

#define CALLS      300
#define GAP_NS     (20 * US)
#define TURN_NS    3000000 /* of a process that has the CPU */
#define SPINNING   4
#define PROCESSORS 2

/* Steps on a machine whose CPUs others spin on: a process has a CPU for a turn,
 * then others have it. */
static void busy_steps(struct build *b, unsigned count)
{
    uint64_t left = draw(TURN_NS);

    for (unsigned i = 0; i < count; i++) {
        BUILD(b, PHASE, .phase = TRACE_PHASE_FORWARD);
        BUILD(b, MODULE_ENTER, .module = 2);
        for (unsigned call = 0; call < CALLS; call++) {
            b->time_ns += GAP_NS + draw(GAP_NS / 4);
            if (left < GAP_NS) {
                uint64_t others = SPINNING + 1 - PROCESSORS;
                b->time_ns += TURN_NS * others / PROCESSORS + draw(TURN_NS);
                left = TURN_NS + draw(TURN_NS);
            }
            left -= GAP_NS;
            BUILD(b, SET, .address = 1, .bytes = 4096);
        }
        BUILD(b, MODULE_LEAVE, .module = 2);
        BUILD(b, PHASE, .phase = TRACE_PHASE_OPTIMIZER);
        BUILD(b, SET, .address = 1, .bytes = 4096);
        BUILD(b, PHASE, .phase = TRACE_PHASE_OTHER);
    }
}

/* 20 recordings of as many steps beside four spinning processes: each is within
 * 10% of the idle machine's, or says that it is not firm; those of ten are
 * within it. */
static void check_busy(unsigned count, unsigned within_least)
{
    const double idle = (GAP_NS + GAP_NS / 8.0 + 4 * US) * CALLS;
    unsigned within = 0;

    for (int run = 0; run < 20; run++) {
        struct build b = start();
        dice = 1000003u * (unsigned)run + count;
        busy_steps(&b, count);
        struct timing t = read_job(&b);
        double off = (double)timing_step_ns(&t) / idle;
        bool near = off > 0.9 && off < 1.1;
        CHECK(near || timing_is_unsure(&t));
        CHECK(!timing_is_unsure(&t) ||
              t.steps[t.typical].low_ns <= t.keeps_up_ns);
        within += near;
        timing_fini(&t);
        free(b.data);
    }
    CHECK(within >= within_least);
}

TEST(twenty_runs_beside_spinning_processes_are_near_or_not_firm)
{
    check_busy(2, 0);
    check_busy(4, 0);
    check_busy(10, 18);
    check_busy(30, 20);
}

TEST(a_busy_host_is_not_firm)
{
    struct build b = start();
    uint64_t one = copy_ns();

    for (int i = 0; i < 12; i++)
        step(&b, 10, i % 3 ? 6 * one : 3 * one);
    struct timing t = read_job(&b);
    CHECK_NEAR(t.host_spread, 1, 0.05);
    CHECK(timing_is_unsure(&t));
    CHECK(t.steps[t.typical].low_ns <= t.keeps_up_ns);
    timing_fini(&t);
    free(b.data);
}

/* Of a machine with two CPUs, in ms since it began. */
static void look(struct build *b, uint64_t ran, uint64_t waited,
                 uint64_t process, uint64_t busy, uint64_t idle)
{
    const uint64_t ms = 1000 * US;

    BUILD(b, HOST_CPUS, .ran_ns = ran * ms, .waited_ns = waited * ms,
          .process_ns = process * ms, .busy_ns = busy * ms,
          .idle_ns = idle * ms);
}

/* Twelve equal steps of 100 ms, in each of which the script waits for WAITED ms
 * and other programs compute for OTHERS ms; its start was beside much else. */
static struct timing read_beside(uint64_t waited, uint64_t others)
{
    struct build b = start();
    uint64_t one = copy_ns();

    look(&b, 10, 900, 10, 1000, 0);
    for (unsigned i = 0; i < 12; i++) {
        look(&b, 1000 + i * 90, 1000 + i * waited, 1000 + i * 95,
             2000 + i * (95 + others), 1000 + i * (200 - 95 - others));
        step(&b, 10, 3 * one);
    }
    struct timing t = read_job(&b);
    CHECK(t.host_steps >= TIMING_FIRM_STEPS);
    CHECK(t.host_spread < 0.01);
    CHECK(t.keeps_up_ns && t.keeps_up_ns < timing_step_ns(&t));
    free(b.data);
    return t;
}

TEST(equal_steps_on_busy_cpus_are_not_firm)
{
    struct timing quiet = read_beside(0, 4);
    CHECK(quiet.host_busy.known);
    CHECK_NEAR(quiet.host_busy.others, 0.02, 0.001);
    CHECK(!timing_is_busy(&quiet) && !timing_is_unsure(&quiet));
    CHECK(quiet.steps[quiet.typical].low_ns > quiet.keeps_up_ns);
    timing_fini(&quiet);

    struct timing waits = read_beside(10, 4);
    CHECK_NEAR(waits.host_busy.waited, 0.1, 0.001);
    CHECK(timing_is_busy(&waits) && timing_is_unsure(&waits));
    CHECK(waits.steps[waits.typical].low_ns <= waits.keeps_up_ns);
    timing_fini(&waits);

    struct timing beside = read_beside(0, 100);
    CHECK_NEAR(beside.host_busy.others, 0.5, 0.001);
    CHECK(timing_is_busy(&beside) && timing_is_unsure(&beside));
    CHECK(beside.steps[beside.typical].low_ns <= beside.keeps_up_ns);
    timing_fini(&beside);
}

/* Looks of other threads have other times. */
TEST(cpus_that_no_step_saw_are_not_known)
{
    struct build b = start();
    uint64_t one = copy_ns();

    look(&b, 10, 900, 10, 1000, 0);
    b.thread = 1;
    for (unsigned i = 0; i < 12; i++)
        step(&b, 10, 3 * one);
    look(&b, 1000, 9000, 5000, 9000, 0);
    struct timing t = read_job(&b);
    CHECK(!t.host_busy.known && !timing_is_busy(&t));
    timing_fini(&t);
    free(b.data);
}

TEST(a_module_has_the_time_of_its_forward)
{
    struct build b = start();

    for (int i = 0; i < 3; i++)
        step(&b, 10, 0);
    struct timing t = read_job(&b);
    CHECK(t.module_count >= 1);
    CHECK(t.modules[0].forward_ns > 0.9 * t.modules[0].ns);
    CHECK(t.modules[0].forward_ns <= t.modules[0].ns);
    timing_fini(&t);
    free(b.data);
}
