/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/replay_repeat.h"

#include "check.h"

#define MOST 24

/* A recording in an array; its calls are numbered by place. */
struct list {
    struct replay_op ops[128];
    size_t count, at;
    struct replay_source source;
};

static int list_next(void *context, struct replay_op *op, struct err *err)
{
    struct list *l = context;

    (void)err;
    if (l->at == l->count)
        return 0;
    *op = l->ops[l->at++];
    return 1;
}

static int list_rewind(void *context, struct err *err)
{
    (void)err;
    ((struct list *)context)->at = 0;
    return 0;
}

static void add(struct list *l, enum replay_kind kind, uint64_t address,
                uint64_t bytes)
{
    l->source = (struct replay_source){
        .context = l, .name = "list", .next = list_next, .rewind = list_rewind};
    l->ops[l->count] = (struct replay_op){
        .kind = kind, .index = l->count, .address = address, .bytes = bytes};
    l->count++;
}

/* Step I takes a block that stays, and one that the next step frees. */
static uint64_t add_step(struct list *l, uint64_t i, uint64_t bytes)
{
    uint64_t begin = l->count;

    add(l, REPLAY_ALLOC, 0x1000 + i, 512);
    add(l, REPLAY_ALLOC, 0x2000 + i, bytes);
    if (i)
        add(l, REPLAY_FREE, 0x2000 + i - 1, 0);
    return begin;
}

static struct replay_repeat *repeat_of(struct list *l, const uint64_t *begins,
                                       size_t count)
{
    struct replay_repeat *r = NULL;
    struct err err = {""};

    CHECK_UINT((uint64_t)replay_repeat_create(&r, &l->source, begins, count,
                                              MOST, &err),
               0);
    return r;
}

TEST(a_step_is_repeated_with_blocks_of_its_own)
{
    struct list l = {.count = 0};
    uint64_t begins[5], live[256] = {0}, blocks = 0, calls = 0;
    struct replay_op op;
    struct err err = {""};

    for (uint64_t i = 0; i < 5; i++)
        begins[i] = add_step(&l, i, 4096);
    struct replay_repeat *r = repeat_of(&l, begins, 5);
    CHECK(r != NULL);
    const struct replay_source *s = replay_repeat_source(r);
    s->rewind(s->context, &err);
    for (; s->next(s->context, &op, &err) > 0; calls++) {
        size_t i = 0;
        while (i < blocks && live[i] != op.address)
            i++;
        if (op.kind == REPLAY_ALLOC) {
            CHECK_UINT(i, blocks); /* a new name */
            live[blocks++] = op.address;
        } else {
            CHECK(i < blocks); /* one that lives */
            live[i] = live[--blocks];
        }
    }
    CHECK_UINT(calls, begins[4] + MOST);
    CHECK_UINT(blocks, 4 + MOST / 3 + 1); /* one a step, and the last one */
    CHECK_UINT(replay_repeat_whole(r, begins[4] + 2), 0);
    CHECK_UINT(replay_repeat_whole(r, begins[4] + 7), 2);
    replay_repeat_destroy(r);
}

TEST(two_steps_in_turn_are_repeated_together)
{
    struct list l = {.count = 0};
    uint64_t begins[8];

    for (uint64_t i = 0; i < 8; i++)
        begins[i] = add_step(&l, i, i % 2 ? 4096 : 8192);
    struct replay_repeat *r = repeat_of(&l, begins, 8);
    CHECK(r != NULL);
    CHECK_UINT(replay_repeat_whole(r, begins[7] + 2), 0);
    CHECK_UINT(replay_repeat_whole(r, begins[7] + 3), 1);
    CHECK_UINT(replay_repeat_whole(r, begins[7] + 6), 2);
    replay_repeat_destroy(r);
}

TEST(steps_that_differ_are_not_repeated)
{
    struct list l = {.count = 0};
    uint64_t begins[6];

    for (uint64_t i = 0; i < 6; i++)
        begins[i] = add_step(&l, i, 4096 + i * 512);
    CHECK(repeat_of(&l, begins, 6) == NULL);
}

TEST(a_step_that_frees_what_came_long_before_is_not_repeated)
{
    struct list l = {.count = 0};
    uint64_t begins[20];

    for (uint64_t i = 0; i < 20; i++) {
        begins[i] = add_step(&l, i, 4096);
        if (i > 11)
            add(&l, REPLAY_FREE, 0x1000 + i - 12, 0);
    }
    struct replay_repeat *r = repeat_of(&l, begins, 20);
    CHECK(r == NULL);
    replay_repeat_destroy(r);
}

TEST(too_few_steps_are_not_repeated)
{
    struct list l = {.count = 0};
    uint64_t begins[2] = {add_step(&l, 0, 4096), add_step(&l, 1, 4096)};

    CHECK(repeat_of(&l, begins, 2) == NULL);
    CHECK(repeat_of(&l, begins, 0) == NULL);
}
