/* SPDX-License-Identifier: Apache-2.0
 * Steps of programs without an optimizer: calls that are repeated together, and
 * text that is generated. */
#include "common/trace/step.h"

#include "check.h"
#include "trace_build.h"

static struct step_list steps_of(const struct build *b)
{
    struct trace_reader r;
    struct step_list list;
    struct err err = {""};

    CHECK(!trace_reader_open_memory(&r, b->data, b->bytes, "built", &err));
    CHECK(!step_list_read(&list, &r, &err));
    trace_reader_close(&r);
    return list;
}

static void work(struct build *b)
{
    BUILD(b, SET, .address = 1, .bytes = 4);
}

static void call(struct build *b, uint64_t module, unsigned pieces,
                 unsigned copies)
{
    for (unsigned i = 0; i < copies; i++)
        BUILD(b, COPY, .direction = TRACE_HOST_TO_DEVICE, .bytes = 1);
    BUILD(b, MODULE_ENTER, .module = module);
    for (unsigned i = 0; i < pieces; i++)
        work(b);
    BUILD(b, MODULE_LEAVE, .module = module);
}

static void check_repeat(struct build *b, enum step_rule rule, size_t steps,
                         uint32_t calls)
{
    struct step_list list = steps_of(b);

    CHECK(list.rule == rule);
    CHECK_UINT(list.count, steps);
    CHECK_UINT(list.steps[list.count - 1].calls, calls);
    step_list_fini(&list);
    free(b->data);
}

TEST(a_step_is_what_is_repeated)
{
    struct build b = build_start();

    for (int i = 0; i < 4; i++) { /* the third call is of the next copies */
        call(&b, 1, 2, 2);
        call(&b, 1, 2, 1);
        call(&b, 1, 2, 1);
    }
    check_repeat(&b, STEP_REPEAT, 4, 3);
}

TEST(modules_that_are_called_in_turn_are_one_step)
{
    struct build b = build_start();

    call(&b, 7, 1, 0); /* a warm-up of its own */
    for (int i = 0; i < 5; i++) {
        call(&b, 1, 2, 0);
        call(&b, 2, 2, 0);
    }
    check_repeat(&b, STEP_REPEAT, 6, 2);
}

TEST(generated_texts_are_steps)
{
    struct build b = build_start();

    for (int text = 0; text < 3; text++)
        for (int token = 0; token < 20; token++)
            call(&b, 1, token ? 3 : 5, 0);
    check_repeat(&b, STEP_REPEAT, 3, 20);
}

TEST(a_text_that_is_not_repeated_is_a_step_a_token)
{
    struct build b = build_start();

    for (int token = 0; token < 20; token++)
        call(&b, 1, token ? 3 : 5, 0);
    check_repeat(&b, STEP_MODULE, 20, 0);
}

TEST(calls_that_nothing_repeats_are_steps)
{
    struct build b = build_start();

    for (unsigned i = 0; i < 9; i++)
        call(&b, 1, i + 1, 0);
    check_repeat(&b, STEP_MODULE, 9, 0);
}

/* The new tokens of 8 samples: the text before is 64 tokens of each. */
TEST(a_text_s_tokens_are_new_ones)
{
    struct build b = build_start();

    for (int text = 0; text < 2; text++)
        for (int token = 0; token < 5; token++) {
            BUILD(&b, MODULE_ENTER, .module = 1);
            BUILD(&b, BATCH, .module = 1, .samples = 8,
                  .tokens = token ? 8 : 8 * 64, .learns = TRACE_LEARNS_NOT);
            work(&b);
            if (!token)
                work(&b);
            BUILD(&b, MODULE_LEAVE, .module = 1);
        }
    struct step_list list = steps_of(&b);
    CHECK(list.rule == STEP_REPEAT);
    CHECK_UINT(list.count, 2);
    CHECK(list.steps[1].input.generates);
    CHECK_UINT(list.steps[1].input.calls, 5);
    CHECK_UINT(list.steps[1].input.tokens, 40);
    step_list_fini(&list);
    free(b.data);
}

/* One call of 8 samples with so many tokens each. */
static void text_call(struct build *b, uint64_t module, uint64_t length)
{
    BUILD(b, MODULE_ENTER, .module = module);
    BUILD(b, BATCH, .module = module, .samples = 8, .tokens = 8 * length,
          .learns = TRACE_LEARNS_NOT);
    work(b);
    BUILD(b, MODULE_LEAVE, .module = module);
}

/* What the steps of B are given, by RULE; of each 8 times TOKENS new ones. */
static void check_text(struct build *b, enum step_rule rule, size_t count,
                       uint64_t module, uint32_t tokens)
{
    struct step_list list = steps_of(b);

    CHECK(list.rule == rule);
    CHECK_UINT(list.count, count);
    for (size_t i = 0; i < list.count; i++) {
        CHECK(list.steps[i].input.generates);
        CHECK_UINT(list.steps[i].input.module, module);
        CHECK_UINT(list.steps[i].input.calls, tokens);
        CHECK_UINT(list.steps[i].input.tokens, 8 * tokens);
    }
    step_list_fini(&list);
    free(b->data);
}

TEST(a_text_without_a_cache_has_new_tokens)
{
    struct build one = build_start(), marked = build_start();

    for (uint64_t token = 0; token < 5; token++)
        text_call(&one, 1, 64 + token);
    check_text(&one, STEP_MODULE, 5, 1, 1);
    for (int text = 0; text < 2; text++) {
        BUILD_TEXT(&marked, RANGE_PUSH, "memsim step generate");
        for (uint64_t token = 0; token < 5; token++)
            text_call(&marked, 1, 64 + token);
        BUILD(&marked, RANGE_POP);
    }
    check_text(&marked, STEP_MARK, 2, 1, 5);
}

TEST(an_encoder_makes_no_tokens)
{
    struct build b = build_start();

    for (int text = 0; text < 3; text++) {
        text_call(&b, 1, 64);
        for (int token = 0; token < 5; token++)
            text_call(&b, 2, 1);
    }
    check_text(&b, STEP_REPEAT, 3, 2, 5);
}

TEST(sequences_of_many_lengths_are_no_text)
{
    static const uint64_t lengths[] = {64, 65, 66, 80, 81, 60};
    struct build b = build_start();

    for (unsigned i = 0; i < 6; i++)
        text_call(&b, 1, lengths[i]);
    struct step_list list = steps_of(&b);
    CHECK_UINT(list.count, 6);
    for (unsigned i = 0; i < 6; i++)
        CHECK_UINT(list.steps[i].input.tokens, 8 * lengths[i]);
    step_list_fini(&list);
    free(b.data);
}

TEST(warm_up_calls_do_not_make_steps_longer)
{
    struct build b = build_start();

    for (int i = 0; i < 11; i++)
        call(&b, 1, i < 3 ? 5 : 3, 0);
    check_repeat(&b, STEP_MODULE, 11, 0);
}
