/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/delay.h"

#include <math.h>

#include "check.h"
#include "playback/memsim_delay.h"

static struct delays parsed(const char *text)
{
    struct delays d = {.count = 0};
    struct err err = {""};

    CHECK(!delays_parse(text, &d, &err));
    CHECK_STR(err.text, "");
    return d;
}

TEST(entries_are_read)
{
    struct delays d = parsed("ncclAllReduce=2ms,rank=3,every=10,jitter=20%,"
                             "seed=9,from-step=5,to-step=8;link=2.5x,node=1;"
                             "gpu=1.3x;host=5ms;die=7,rank=2");

    CHECK(d.count == 5);
    const struct delay *a = &d.all[0];
    CHECK(a->kind == DELAY_CALL && a->ns == 2000000 && a->rank == 3);
    CHECK_STR(a->name, "ncclAllReduce");
    CHECK(a->every == 10 && a->from_step == 5 && a->to_step == 8);
    CHECK(fabs(a->jitter - .2) < 1e-12 && a->seed == 9);
    CHECK(d.all[1].kind == DELAY_LINK && d.all[1].factor == 2.5 &&
          d.all[1].node == 1 && d.all[1].rank == DELAY_ANY);
    CHECK(d.all[2].kind == DELAY_GPU && d.all[3].kind == DELAY_HOST);
    CHECK(d.all[4].kind == DELAY_DEATH && d.all[4].from_step == 7);
    CHECK(parsed("x=1.5us").all[0].ns == 1500);
    CHECK(parsed("x=0ms").count == 1 && parsed("none").count == 0);
    CHECK(parsed("x=1s;").all[0].ns == 1000000000);
}

TEST(other_entries_are_refused_with_what_is_wanted)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "'' is not of the form WHAT=AMOUNT"},
        {"2ms", "'2ms' is not of the form WHAT=AMOUNT"},
        {"x=2", "'x=2' is not an amount that is known"},
        {"x=-1ms", "'x=-1ms' is not an amount"},
        {"x=2h", "not an amount"},
        {"x=3601s", "at most an hour"},
        {"x=0.5x", "at least 1x"},
        {"host=2x", "of the form host=5ms"},
        {"x=1ms,rank", "'rank' is not a condition NAME=VALUE"},
        {"x=1ms,rank=-1", "'rank=-1' is not a whole number"},
        {"x=1ms,every=0", "every: from 1"},
        {"x=1ms,jitter=20", "'jitter=20' is not of the form jitter=20%"},
        {"x=1ms,jitter=101%", "at most 100%"},
        {"x=1ms,form-step=2", "'form-step=2' is not a condition that is known"},
        {"x=1ms,from-step=5,to-step=4", "to-step is before from-step"},
        {"die=5", "of the form die=STEP,rank=R"},
        {"die=x,rank=1", "die=STEP"},
        {"y=1ms;x=1ms,", "'' is not a condition"},
        {"a=1ms;b=1ms;c=1ms;d=1ms;e=1ms;f=1ms;g=1ms;h=1ms;i=1ms;j=1ms;k=1ms;"
         "l=1ms;m=1ms;n=1ms;o=1ms;p=1ms;q=1ms",
         "more than 16 entries"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct delays d = {.count = 0};
        struct err err = {""};
        CHECK(delays_parse(bad[i].text, &d, &err) == -1);
        CHECK(!strncmp(err.text, "--delay: ", 9));
        if (!strstr(err.text, bad[i].says))
            CHECK_STR(err.text, bad[i].says);
    }
}

static struct delay_state state_of(const struct delays *d,
                                   const struct delay_ranks *ranks)
{
    return (struct delay_state){.delays = d, .ranks = ranks};
}

static const struct delay_call all_reduce = {.name = "ncclAllReduce",
                                             .kind = OP_COLLECTIVE,
                                             .engine = SIM_COMM,
                                             .link = SIM_LINK_NODES,
                                             .duration_ns = 1000,
                                             .ranks = 4};
static const struct delay_call kernel = {.name = "gemm",
                                         .kind = OP_LAUNCH,
                                         .engine = SIM_COMPUTE,
                                         .duration_ns = 1000};

TEST(a_call_gets_what_is_said_of_it)
{
    struct delays d = parsed("ncclAllReduce=2us,every=3,from-step=1;link=3x;"
                             "gpu=1.5x,rank=1");
    const struct delay_ranks ranks = {.rank = 1};
    struct delay_state s = state_of(&d, &ranks);
    struct delay_call call = all_reduce;

    /* the third one is in no such step, the sixth is */
    for (int i = 1; i <= 6; i++) {
        call.step = i > 3;
        struct delay_effect e = delay_of(&s, &call);
        CHECK(e.late_ns == (i == 6 ? 4000 : 2000) && e.factor == 1);
    }
    CHECK(s.hits[0] == 1 && s.added_ns[0] == 2000);
    CHECK(s.hits[1] == 6 && s.added_ns[1] == 12000);
    struct delay_effect e = delay_of(&s, &kernel);
    CHECK(e.late_ns == 0 && e.factor == 1.5);
    call = all_reduce;
    call.link = SIM_LINK_NODE;
    call.name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
    call.step = 1;
    delay_of(&s, &call);
    CHECK(s.calls[0] == 7 && s.calls[1] == 6);
}

TEST(ranks_and_nodes_are_told_apart)
{
    struct delays d = parsed("nccl=1us,rank=5;nccl=10us,node=1");
    const struct {
        uint32_t rank, local;
        uint64_t late_ns;
    } cases[] = {{5, 4, 11000}, {4, 4, 10000}, {3, 4, 0}, {5, 0, 1000}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct delay_ranks ranks = {.rank = cases[i].rank,
                                          .local = cases[i].local};
        struct delay_state s = state_of(&d, &ranks);
        CHECK(delay_of(&s, &all_reduce).late_ns == cases[i].late_ns);
    }
}

/* A rank that stands for others comes when the last of them does. */
TEST(jitter_is_the_same_whatever_ranks_are_run)
{
    struct delays d = parsed("nccl=1ms,jitter=50%,seed=4");
    struct delay_ranks class = {.rank = 0};
    struct delay_state of_class = state_of(&d, &class);
    struct delay_ranks one[8];
    struct delay_state each[8];
    double sum = 0;

    for (uint32_t r = 0; r < 8; r++) {
        rank_set_add(&class.members, r);
        one[r] = (struct delay_ranks){.rank = r};
        each[r] = state_of(&d, &one[r]);
    }
    for (int i = 0; i < 1000; i++) {
        uint64_t most_ns = 0;
        for (int r = 0; r < 8; r++) {
            uint64_t ns = delay_of(&each[r], &all_reduce).late_ns;
            CHECK(ns >= 500000 && ns <= 1500000);
            most_ns = ns > most_ns ? ns : most_ns;
            sum += (double)ns;
        }
        CHECK(delay_of(&of_class, &all_reduce).late_ns == most_ns);
    }
    CHECK(fabs(sum / 8000 - 1e6) < 1e4);
    rank_set_fini(&class.members);
}

TEST(the_host_is_late_in_steps_and_dies_in_one)
{
    struct delays d = parsed("host=5us,every=2;die=3,rank=1");
    const struct delay_ranks ranks = {.rank = 1}, other = {.rank = 2};
    struct delay_state s = state_of(&d, &ranks), o = state_of(&d, &other);

    CHECK(delay_of_step(&s, 0) == 0 && delay_of_step(&s, 1) == 5000);
    CHECK(delay_death(&s, 2) == DELAY_ANY && delay_death(&s, 3) == 1);
    CHECK(delay_death(&o, 3) == DELAY_ANY);
    CHECK(delays_need_steps(&d) && !delays_need_steps(&(struct delays){0}));
}

static struct memsim_delay_call asked;

static uint64_t answer(struct memsim_delay_call *call,
                       const struct delay_ranks *of)
{
    call->rank = of->rank;
    asked = *call;
    return call->number == 1 ? 7 : 0;
}

TEST(a_library_is_asked_for_each_call)
{
    struct delays d = {.library = "x"};
    const struct delay_ranks ranks = {.rank = 9, .local = 4};
    struct delay_state s = state_of(&d, &ranks);

    s.library = answer;
    CHECK(delay_of(&s, &kernel).late_ns == 0 && asked.ranks == 0);
    CHECK(delay_of(&s, &all_reduce).late_ns == 7);
    CHECK(asked.rank == 9 && asked.between_nodes == 1 && asked.ranks == 4 &&
          asked.duration_ns == 1000 && asked.size == sizeof asked);
    CHECK_STR(asked.name, "ncclAllReduce");
    CHECK(s.library_calls == 2 && delays_need_steps(&d));
}
