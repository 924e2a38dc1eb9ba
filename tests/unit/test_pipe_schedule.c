/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/pipe_schedule.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "memsim/change/pipe_split.h"

#define TEXT_BYTES 4096

/* "F0.1" and "B0.1": stage 0, microbatch 1. "s0" sends what stage 0 returns,
 * "r0" receives it; "S0" and "R0" its gradient; "+" joins those of a group.
 * "w3" waits for exchange 3, "x" gives back what was sent. */
static void action_text(const struct pipe_action *a, char *text)
{
    size_t at = strlen(text);

    if (a->what == PIPE_FORWARD || a->what == PIPE_BACKWARD)
        at += (size_t)sprintf(text + at, "%c%u.%u",
                              a->what == PIPE_FORWARD ? 'F' : 'B', a->stage,
                              a->microbatch);
    if (a->what == PIPE_WAIT)
        at += (size_t)sprintf(text + at, "w%u", a->exchange);
    if (a->what == PIPE_RELEASE)
        at += (size_t)sprintf(text + at, "x");
    for (uint32_t i = 0; i < a->part_count; i++)
        at += (size_t)sprintf(
            text + at, "%s%c%u", i ? "+" : "",
            "srSR"[a->parts[i].receive + 2 * a->parts[i].gradient],
            a -> parts[i].boundary);
    strcpy(text + at, " ");
}

static const char *list_text(const struct pipe_list *list, char *text)
{
    *text = '\0';
    for (size_t i = 0; i < list->count; i++)
        action_text(&list->all[i], text);
    return text;
}

static void lists_fini(struct pipe_list *lists, uint32_t ranks)
{
    for (uint32_t r = 0; r < ranks; r++)
        pipe_list_fini(&lists[r]);
}

TEST(gpipe_runs_all_forwards_first)
{
    const struct pipe_shape shape = {PIPE_GPIPE, 2, 1, 2};
    struct pipe_list lists[2];
    struct err err = {""};
    char text[TEXT_BYTES];

    CHECK(!pipe_schedule_make(&shape, lists, &err));
    CHECK_STR(list_text(&lists[0], text),
              "F0.0 s0 F0.1 s0 w0 w1 R0 w2 B0.0 x R0 w3 B0.1 x ");
    CHECK_STR(list_text(&lists[1], text),
              "r0 w0 F1.0 r0 w1 F1.1 B1.0 S0 x B1.1 S0 w2 w3 x ");
    CHECK_UINT(pipe_list_in_flight(&lists[0], 0), 2);
    lists_fini(lists, 2);
}

TEST(one_forward_one_backward_fuses_sends_with_receives)
{
    const struct pipe_shape shape = {PIPE_1F1B, 2, 1, 3};
    struct pipe_list lists[2];
    struct err err = {""};
    char text[TEXT_BYTES];

    CHECK(!pipe_schedule_make(&shape, lists, &err));
    CHECK_STR(list_text(&lists[0], text),
              "F0.0 s0 F0.1 w0 s0+R0 w1 B0.0 x F0.2 s0+R0 w2 B0.1 x R0 w3 "
              "B0.2 x ");
    CHECK_STR(list_text(&lists[1], text),
              "r0 w0 F1.0 B1.0 S0+r0 w1 F1.1 B1.1 x S0+r0 w2 F1.2 B1.2 x S0 w3 "
              "x ");
    CHECK_UINT(pipe_list_in_flight(&lists[0], 0), 2);
    CHECK_UINT(pipe_list_in_flight(&lists[1], 1), 1);
    lists_fini(lists, 2);
}

/* As torch.distributed.pipelining 2.11 has it: pipeline_order_with_comms of
 * ScheduleInterleaved1F1B. */
TEST(interleaved_receives_where_the_sender_puts_them)
{
    const struct pipe_shape shape = {PIPE_INTERLEAVED, 2, 2, 2};
    struct pipe_list lists[2];
    struct err err = {""};
    char text[TEXT_BYTES];

    CHECK(!pipe_schedule_make(&shape, lists, &err));
    CHECK_STR(list_text(&lists[0], text),
              "F0.0 s0 r1 F0.1 s0 r1 w1 F2.0 s2 w3 F2.1 s2 R2 w6 B2.0 x S1 x "
              "R2 w8 B2.1 x S1 x R0 w10 B0.0 x R0 w11 B0.1 x w9 w7 w5 w4 w2 "
              "w0 ");
    CHECK_STR(list_text(&lists[1], text),
              "r0 w0 F1.0 s1 r0 w2 F1.1 s1 r2 w4 F3.0 r2 B3.0 S2 x R1 w5 F3.1 "
              "B3.1 S2 x R1 w7 B1.0 x S0 x w9 B1.1 x S0 x w11 w10 w8 w6 w3 "
              "w1 ");
    lists_fini(lists, 2);
}

static uint32_t count_of(const struct pipe_list *list, enum pipe_what what,
                         bool receive)
{
    uint32_t count = 0;

    for (size_t i = 0; i < list->count; i++) {
        const struct pipe_action *a = &list->all[i];
        if (a->what != what)
            continue;
        if (what != PIPE_EXCHANGE)
            count++;
        for (uint32_t k = 0; k < a->part_count; k++)
            count += a->parts[k].receive == receive;
    }
    return count;
}

/* Every stage computes every microbatch in both directions, and what is sent is
 * received, and given back. */
static void check_whole(const struct pipe_shape *shape)
{
    struct pipe_list lists[PIPE_RANKS_MAX];
    struct err err = {""};
    uint32_t passes = shape->chunks * shape->microbatches;
    uint32_t sent = 0, received = 0;

    CHECK(!pipe_schedule_make(shape, lists, &err));
    for (uint32_t r = 0; r < shape->ranks; r++) {
        CHECK_UINT(count_of(&lists[r], PIPE_FORWARD, false), passes);
        CHECK_UINT(count_of(&lists[r], PIPE_BACKWARD, false), passes);
        CHECK_UINT(count_of(&lists[r], PIPE_WAIT, false), lists[r].exchanges);
        sent += count_of(&lists[r], PIPE_EXCHANGE, false);
        CHECK_UINT(count_of(&lists[r], PIPE_RELEASE, false),
                   count_of(&lists[r], PIPE_EXCHANGE, false));
        received += count_of(&lists[r], PIPE_EXCHANGE, true);
    }
    CHECK_UINT(sent, received);
    CHECK_UINT(sent,
               2 * (shape->ranks * shape->chunks - 1) * shape->microbatches);
    lists_fini(lists, shape->ranks);
}

TEST(nothing_is_left_out)
{
    for (uint32_t ranks = 2; ranks <= 6; ranks++)
        for (uint32_t m = ranks; m <= 12; m += ranks) {
            check_whole(&(struct pipe_shape){PIPE_GPIPE, ranks, 1, m - 1});
            check_whole(&(struct pipe_shape){PIPE_1F1B, ranks, 1, m});
            check_whole(&(struct pipe_shape){PIPE_INTERLEAVED, ranks, 2, m});
            check_whole(&(struct pipe_shape){PIPE_INTERLEAVED, ranks, 3, m});
        }
    check_whole(&(struct pipe_shape){PIPE_1F1B, 4, 1, 7});
    check_whole(&(struct pipe_shape){PIPE_INTERLEAVED, 4, 2, 3});
}

TEST(shapes_that_pytorch_refuses_are_refused)
{
    struct pipe_list lists[4];
    struct err err = {""};

    CHECK(pipe_schedule_make(&(struct pipe_shape){PIPE_1F1B, 4, 1, 3}, lists,
                             &err));
    CHECK(strstr(err.text, "3 microbatches are fewer than the 4 stages"));
    err_clear(&err);
    CHECK(pipe_schedule_make(&(struct pipe_shape){PIPE_INTERLEAVED, 2, 2, 5},
                             lists, &err));
    CHECK(strstr(err.text, "5 microbatches are not 2 rounds"));
}

TEST(a_schedule_fits_the_stages_of_a_rank)
{
    enum pipe_schedule_kind kind;
    struct err err = {""};

    CHECK(!pipe_schedule_named(&kind, NULL, 1, &err) && kind == PIPE_1F1B);
    CHECK(!pipe_schedule_named(&kind, NULL, 2, &err) &&
          kind == PIPE_INTERLEAVED);
    CHECK(!pipe_schedule_named(&kind, "gpipe", 1, &err) && kind == PIPE_GPIPE);
    CHECK(pipe_schedule_named(&kind, "gpipe", 2, &err));
    CHECK(strstr(err.text, "one stage of each rank"));
    err_clear(&err);
    CHECK(pipe_schedule_named(&kind, "interleaved", 1, &err));
    err_clear(&err);
    CHECK(pipe_schedule_named(&kind, "zero", 1, &err));
    CHECK(strstr(err.text, "none of gpipe, 1f1b and interleaved"));
}

static void check_split(const char *text, uint32_t layers, const char *wanted)
{
    struct pipe_split s;
    struct err err = {""};
    char got[TEXT_BYTES] = "";

    CHECK(!pipe_split_read(&s, text, &err) &&
          !pipe_split_layers(&s, layers, &err));
    for (uint32_t i = 0; i <= s.stages; i++)
        sprintf(got + strlen(got), "%u ", s.first[i]);
    CHECK_STR(got, wanted);
}

TEST(layers_are_given_to_stages)
{
    check_split("2", 4, "0 2 4 ");
    check_split("3", 5, "0 2 4 5 ");
    check_split("2x2", 5, "0 2 3 4 5 ");
    check_split("1+3", 4, "0 1 4 ");
    check_split("1+3+3+1x2", 8, "0 1 4 7 8 ");
}

TEST(a_split_that_is_none_says_why)
{
    static const char *const wrong[] = {"",        "0",
                                        "1",       "x2",
                                        "2x",      "2x0",
                                        "2+",      "+2",
                                        "2-",      "3+0+1",
                                        "1+1+1x2", "33",
                                        "2x999",   "999999999999999999999",
                                        "1x2",     "1+1x2"};
    struct pipe_split s;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct err err = {""};
        CHECK(pipe_split_read(&s, wrong[i], &err));
        CHECK(strstr(err.text, "--change: "));
    }
    struct err err = {""};
    CHECK(!pipe_split_read(&s, "2+2", &err));
    CHECK(pipe_split_layers(&s, 5, &err));
    CHECK(strstr(err.text, "have 4 layers, the recording 5"));
    err_clear(&err);
    CHECK(!pipe_split_read(&s, "4", &err));
    CHECK(pipe_split_layers(&s, 3, &err));
    CHECK(strstr(err.text, "3 layers are too few for 4 stages"));
}
