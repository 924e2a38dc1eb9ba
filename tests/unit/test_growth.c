/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/growth.h"
#include "memsim/attribution/growth_heap.h"

#include <stdlib.h>

#include "check.h"

#define STEPS 12
#define KIB   1024u

static const struct growth_key loss = {1, 0, 7}, other = {2, 0, 7};

static struct growth_mark take(struct growth *g, const struct growth_key *key,
                               uint64_t bytes)
{
    return growth_take(g, key, &(struct growth_bytes){bytes, bytes});
}

static void drop(struct growth *g, const struct growth_mark *mark,
                 uint64_t bytes)
{
    growth_drop(g, mark, &(struct growth_bytes){bytes, bytes});
}

/* What grows in G, alone; its rate, or 0. */
static uint64_t rate_of(struct growth *g, enum growth_form *form)
{
    struct growth_found *found;
    size_t count = growth_find(g, &found);
    uint64_t rate = count == 1 ? found[0].step_bytes : 0;

    CHECK(count <= 1);
    *form = count ? found[0].form : GROWTH_BLOCKS;
    free(found);
    growth_fini(g);
    return rate;
}

TEST(blocks_that_each_step_leaves_behind_are_found)
{
    struct growth g = {0};
    enum growth_form form;

    for (int i = 0; i < STEPS; i++) {
        struct growth_mark passing = take(&g, &other, 64 * KIB);
        take(&g, &loss, 4 * KIB);
        growth_step(&g);
        drop(&g, &passing, 64 * KIB);
    }
    CHECK_UINT(rate_of(&g, &form), 4 * KIB);
    CHECK_UINT(form, GROWTH_BLOCKS);
}

TEST(five_steps_are_too_few)
{
    struct growth g = {0};
    enum growth_form form;

    for (unsigned i = 0; i + 2 < GROWTH_STEPS; i++) {
        take(&g, &loss, KIB);
        growth_step(&g);
    }
    CHECK_UINT(rate_of(&g, &form), 0);
}

TEST(what_a_step_leaves_for_the_next_one_is_no_growth)
{
    struct growth g = {0};
    struct growth_mark last = take(&g, &loss, KIB);
    enum growth_form form;

    for (unsigned i = 1; i < STEPS; i++) { /* longer each time, and uneven */
        growth_step(&g);
        struct growth_mark next = take(&g, &loss, i * i * 4 * KIB + KIB);
        drop(&g, &last, (i - 1) * (i - 1) * 4 * KIB + KIB);
        last = next;
    }
    CHECK_UINT(rate_of(&g, &form), 0);
}

TEST(a_list_that_keeps_four_steps_is_no_growth)
{
    struct growth_mark kept[STEPS];
    struct growth g = {0};
    enum growth_form form;

    for (int i = 0; i < STEPS; i++) {
        kept[i] = take(&g, &loss, KIB);
        if (i >= 4)
            drop(&g, &kept[i - 4], KIB);
        growth_step(&g);
    }
    CHECK_UINT(rate_of(&g, &form), 0);
}

TEST(what_is_kept_every_third_step_counts_a_third)
{
    struct growth g = {0};
    enum growth_form form;

    for (int i = 0; i < 2 * STEPS; i++) {
        if (i % 3 == 2)
            take(&g, &loss, 3 * KIB);
        growth_step(&g);
    }
    CHECK_UINT(rate_of(&g, &form), KIB);
}

TEST(a_list_that_is_cleared_now_and_then_is_no_growth)
{
    struct growth_mark kept[4];
    struct growth g = {0};
    enum growth_form form;

    for (int i = 0; i < 2 * STEPS; i++) {
        kept[i % 4] = take(&g, &loss, KIB);
        growth_step(&g);
        for (int k = 0; i % 4 == 3 && k < 4; k++)
            drop(&g, &kept[k], KIB);
    }
    CHECK_UINT(rate_of(&g, &form), 0);
}

TEST(a_tensor_that_becomes_longer_is_found)
{
    struct growth g = {0};
    struct growth_mark last = take(&g, &loss, KIB);
    enum growth_form form;

    for (unsigned i = 1; i < STEPS; i++) {
        struct growth_mark next = take(&g, &loss, (i + 1) * KIB);
        drop(&g, &last, i * KIB);
        last = next;
        growth_step(&g);
    }
    CHECK_UINT(rate_of(&g, &form), KIB);
    CHECK_UINT(form, GROWTH_TENSOR);
}

TEST(blocks_of_another_kind_in_each_step_are_found_together)
{
    struct growth g = {0};
    enum growth_form form;

    for (unsigned i = 0; i < STEPS; i++) {
        take(&g, &(struct growth_key){100 + i, 0, 0}, 2 * KIB);
        growth_step(&g);
    }
    CHECK_UINT(rate_of(&g, &form), 2 * KIB);
    CHECK_UINT(form, GROWTH_VARIED);
}

/* Training, then CALLS that keep BYTES each and their last outputs. */
static void evaluate(struct growth *g, unsigned calls, uint64_t bytes)
{
    struct growth_mark passing = take(g, &other, 64 * KIB);

    growth_step(g);
    drop(g, &passing, 64 * KIB);
    struct growth_mark last = take(g, &loss, 3 * KIB);
    for (unsigned i = 0; i < calls; i++) {
        growth_call(g);
        if (bytes)
            take(g, &other, bytes);
        drop(g, &last, 3 * KIB);
        last = take(g, &loss, 3 * KIB);
    }
    drop(g, &last, 3 * KIB);
}

TEST(what_calls_between_steps_leave_behind_is_found)
{
    struct growth g = {0};

    growth_step(&g);
    evaluate(&g, 10, 8 * KIB);
    growth_step(&g);
    CHECK_UINT(g.calls.found.step_bytes, 8 * KIB);
    CHECK_UINT(g.calls.found.form, GROWTH_BLOCKS);
    CHECK_UINT(g.calls.found.key.operation, other.operation);
    CHECK_UINT(g.calls.found_count, 10);
    growth_fini(&g);
}

TEST(calls_that_leave_nothing_behind_do_not_grow)
{
    struct growth g = {0};

    for (int i = 0; i < 3; i++)
        evaluate(&g, 20, 0);
    CHECK_UINT(g.calls.found.step_bytes, 0);
    evaluate(&g, 4, 8 * KIB); /* too few */
    CHECK_UINT(g.calls.found.step_bytes, 0);
    growth_fini(&g);
}

TEST(steps_that_were_none_do_not_count)
{
    struct growth g = {0};
    enum growth_form form;

    for (int i = 0; i < STEPS; i++) { /* calls while a model is built */
        take(&g, &loss, KIB);
        growth_step(&g);
    }
    growth_restart(&g);
    CHECK_UINT(growth_steps(&g), 0);
    for (int i = 0; i < STEPS; i++)
        growth_step(&g);
    CHECK_UINT(rate_of(&g, &form), 0);
}

TEST(a_kind_with_stacks_of_some_blocks_has_the_place_that_keeps_most)
{
    const struct growth_key kept = {1, 9, 7}, passing = {1, 8, 7};
    struct growth_found *found;
    struct growth g = {0};

    for (int i = 0; i < STEPS; i++) {
        take(&g, i < 4 ? &loss : &kept, KIB);
        struct growth_mark mark = take(&g, &passing, KIB);
        growth_step(&g);
        drop(&g, &mark, KIB);
    }
    CHECK_UINT(growth_find(&g, &found), 1);
    CHECK_UINT(found[0].key.stack, 9);
    free(found);
    growth_fini(&g);
}

TEST(segments_that_fill_with_as_many_blocks_are_fragments)
{
    struct growth g = {0};

    take(&g, &other, 64 * KIB);
    for (unsigned i = 0; i < STEPS; i++) {
        growth_hold(&g, (64 + 16 * i) * KIB);
        growth_step(&g);
    }
    CHECK_UINT(growth_held_bytes(&g), 16 * KIB);
    growth_fini(&g);
}

TEST(segments_of_blocks_that_grow_are_no_fragments)
{
    struct growth g = {0};

    for (unsigned i = 0; i < STEPS; i++) {
        take(&g, &loss, 4 * KIB);
        growth_hold(&g, 16 * (i + 1) * KIB);
        growth_step(&g);
    }
    CHECK_UINT(growth_held_bytes(&g), 0);
    growth_fini(&g);
}

TEST(a_tensor_that_grows_faster_and_faster_says_so)
{
    struct growth_found *found;
    struct growth g = {0};
    struct growth_mark last = take(&g, &loss, 0);
    uint64_t bytes = 0;

    for (unsigned i = 0; i < STEPS; i++) {
        uint64_t more = (100 + 10 * i) * KIB;
        struct growth_mark next = take(&g, &loss, bytes + more);
        drop(&g, &last, bytes);
        bytes += more;
        last = next;
        growth_step(&g);
    }
    CHECK_UINT(growth_find(&g, &found), 1);
    CHECK_UINT(found[0].step_more, 10 * KIB);
    CHECK_UINT(found[0].step_bytes, (100 + 10 * (STEPS - 1)) * KIB);
    free(found);
    growth_fini(&g);
}

/* The rate of a heap that adds MORE bytes with each step, and 2 KiB of jitter;
 * in step COLLECTED a garbage collection gives back what was there before. */
static struct growth_rate heap_rate(uint64_t more, unsigned collected)
{
    struct growth_heap h = {.count = 0};
    uint64_t bytes = 100 << 20;

    for (unsigned i = 1; i <= STEPS; i++) {
        bytes += more + i % 3 * KIB;
        bytes -= i == collected ? 600 * KIB : 0;
        growth_heap_measure(&h, i, bytes);
    }
    return growth_heap_rate(&h);
}

TEST(a_heap_that_grows_is_found_beside_a_garbage_collection)
{
    CHECK(heap_rate(12 * KIB, 0).bytes >= 12 * KIB);
    CHECK(heap_rate(12 * KIB, 9).bytes >= 12 * KIB);
    CHECK(heap_rate(12 * KIB, 9).bytes <= 14 * KIB);
    CHECK_UINT(heap_rate(0, 0).bytes, 0);
}

TEST(the_range_of_a_heap_is_as_wide_as_its_rises_are_apart)
{
    for (unsigned collected = 0; collected < 10; collected += 9) {
        const struct growth_rate rate = heap_rate(12 * KIB, collected);
        CHECK_UINT(rate.least, 11 * KIB);
        CHECK_UINT(rate.bytes, 13 * KIB);
        CHECK_UINT(rate.most, 15 * KIB);
    }
}

/* Every eighth step adds a table that the others fill. */
TEST(a_rare_rise_is_in_the_range_by_its_mean)
{
    struct growth_heap h = {.count = 0};
    uint64_t bytes = 100 << 20;

    for (unsigned i = 1; i <= 40; i++) {
        bytes += i % 8 ? 8 * KIB : 72 * KIB;
        growth_heap_measure(&h, i, bytes);
    }
    const struct growth_rate rate = growth_heap_rate(&h);
    CHECK_UINT(rate.bytes, 8 * KIB);
    CHECK_UINT(rate.least, 8 * KIB);
    CHECK(rate.most >= 15 * KIB && rate.most <= 17 * KIB);
}

/* The rate of a heap with what OF says at each of COUNT steps, from 1 on, and 2
 * KiB of jitter. */
static struct growth_rate rate_at(uint64_t (*of)(unsigned step), unsigned count)
{
    struct growth_heap h = {.count = 0};

    for (unsigned i = 1; i <= count; i++)
        growth_heap_measure(&h, i, 100 * KIB * KIB + of(i) + i * 7 % 3 * KIB);
    return growth_heap_rate(&h);
}

static uint64_t by_sample(unsigned step) /* 2, 14 and 8 KiB in turn */
{
    return (step / 3 * 24 + (step % 3 ? step % 3 * 12 - 10 : 0)) * KIB;
}

static uint64_t every_fourth(unsigned step)
{
    return step / 4 * 30 * KIB;
}

static uint64_t slowly(unsigned step)
{
    return step * (KIB + KIB / 2);
}

static uint64_t to_a_bound(unsigned step)
{
    return (step < 20 ? step : 20) * 8 * KIB;
}

static uint64_t at_once(unsigned step)
{
    return step / 20 * 200 * KIB + step * KIB / 2;
}

static uint64_t collected(unsigned step) /* by every tenth step */
{
    return step % 10 * 12 * KIB;
}

TEST(a_heap_that_grows_unevenly_is_found)
{
    const struct growth_rate rate = rate_at(by_sample, 14);

    CHECK(rate.bytes >= 7 * KIB && rate.bytes <= 9 * KIB);
    CHECK(rate.least <= 8 * KIB && rate.most >= 8 * KIB);
    const struct growth_rate rare = rate_at(every_fourth, 40);
    CHECK(rare.least <= 15 * KIB / 2 && rare.most >= 15 * KIB / 2);
}

static uint64_t evenly(unsigned step)
{
    return step * 5 * KIB;
}

TEST(slow_growth_of_a_heap_needs_more_steps)
{
    CHECK(rate_at(evenly, 9).bytes >= 4 * KIB);
    CHECK_UINT(rate_at(slowly, 14).bytes, 0);
    const struct growth_rate rate = rate_at(slowly, 40);
    CHECK(rate.bytes >= KIB && rate.bytes <= 2 * KIB);
    const struct growth_rate later = rate_at(slowly, 2000);
    CHECK(later.bytes >= KIB && later.bytes <= 2 * KIB);
}

TEST(a_heap_that_reaches_a_bound_does_not_grow)
{
    CHECK_UINT(rate_at(to_a_bound, 60).bytes, 0);
    CHECK_UINT(rate_at(at_once, 39).bytes, 0);
    CHECK_UINT(rate_at(collected, 60).bytes, 0);
}

TEST(growth_that_would_not_be_seen_is_a_number_of_bytes)
{
    struct growth_heap h = {.count = 0};

    CHECK_UINT(growth_heap_least(&h), 0);
    for (unsigned i = 1; i <= 64; i++)
        growth_heap_measure(&h, i, 1024 * KIB + i % 2);
    CHECK_UINT(growth_heap_least(&h), 547);
}

/* A level that stays is a look; one that nobody looked at is none. */
TEST(a_heap_is_known_after_enough_looks)
{
    struct growth_heap same = {.count = 0}, seldom = {.count = 0};

    for (unsigned i = 1; i <= 14; i++) {
        CHECK(growth_heap_known(&same) == (i > GROWTH_HEAP_LOOKS));
        growth_heap_measure(&same, i, 1024 * KIB);
        growth_heap_measure(&seldom, i, i % 3 ? 0 : i * 1024 * KIB);
    }
    CHECK_UINT(same.looks, 14);
    CHECK_UINT(growth_heap_rate(&same).bytes, 0);
    CHECK_UINT(seldom.looks, 4);
    CHECK(!growth_heap_known(&seldom));
}

TEST(the_range_of_a_level_is_that_of_its_rises)
{
    struct growth_size s = {.bytes = 0};

    for (unsigned i = 1; i <= 20; i++)
        growth_size_measure(&s, i, (5 * i + i % 2) * KIB); /* 6 and 4 */
    const struct growth_rate rate = growth_size_rate(&s, 20);
    CHECK(rate.bytes / KIB == 4 || rate.bytes / KIB == 5); /* in each step */
    CHECK(rate.least == 4 * KIB && rate.most == 6 * KIB);
    s = (struct growth_size){.bytes = 0};
    for (unsigned i = 1; i <= 20; i++) /* jitter: it falls */
        growth_size_measure(&s, i, i % 2 * i * i * KIB);
    CHECK_UINT(growth_size_rate(&s, 20).bytes, 0);
    s = (struct growth_size){.bytes = 0};
    for (unsigned i = 1; i <= 20; i++)
        growth_size_measure(&s, i, 5 * i * KIB);
    const struct growth_rate even = growth_size_rate(&s, 20);
    CHECK(even.bytes == 5 * KIB && even.least == 5 * KIB &&
          even.most == 5 * KIB);
}
