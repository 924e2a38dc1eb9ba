/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/trace_kept.h"

#include <stdlib.h>

#include "check.h"

#define RECORDS 20000

struct made {
    struct trace_item item;
    uint64_t fields[TRACE_FIELDS_MAX];
    char text[40];
};

/* Records of which most repeat a few, with jumps of all sizes in between. */
static void make(struct made *m, const struct made *before)
{
    unsigned same = (unsigned)rand() % 50;

    *m = (struct made){.item.head.kind = (uint16_t)(TRACE_LAUNCH + same % 7)};
    m->item.head.fields = (uint16_t)(same % TRACE_FIELDS_MAX);
    for (unsigned i = 0; i < m->item.head.fields; i++)
        m->fields[i] = same * i * UINT64_C(0x123456789ab);
    if (rand() % 100 == 0)
        m->fields[0] = (uint64_t)rand();
    if (m->fields[0] && !m->item.head.fields)
        m->item.head.fields = 1;
    m->item.head.text_bytes = same % 3 ? 0 : same % sizeof m->text;
    memset(m->text, (int)same, m->item.head.text_bytes);
    m->item.head.thread = rand() % 10 ? before->item.head.thread
                                      : (uint32_t)rand() % 3000000000u;
    m->item.head.time_ns = before->item.head.time_ns +
                           (rand() % 9 ? (uint64_t)rand() % 300
                                       : (uint64_t)rand() << rand() % 24);
    m->item.ordinal =
        before->item.ordinal + 1 + (rand() % 5 ? 0 : (uint64_t)rand());
}

static void check_same(const struct trace_item *a, const struct trace_item *b)
{
    CHECK_UINT(a->head.kind, b->head.kind);
    CHECK_UINT(a->head.fields, b->head.fields);
    CHECK_UINT(a->head.thread, b->head.thread);
    CHECK_UINT(a->head.time_ns, b->head.time_ns);
    CHECK_UINT(a->ordinal, b->ordinal);
    CHECK_UINT(a->head.text_bytes, b->head.text_bytes);
    CHECK(!memcmp(a->fields, b->fields, TRACE_FIELDS_MAX * 8));
    CHECK(!a->head.text_bytes ||
          !memcmp(a->text, b->text, a->head.text_bytes));
}

TEST(records_come_back_as_they_were)
{
    struct trace_kept *k = trace_kept_create(SIZE_MAX);
    struct made *all = calloc(RECORDS + 1, sizeof *all);
    struct trace_kept_cursor at = {.block = 0};
    struct trace_item item;

    srand(7);
    for (size_t i = 1; i <= RECORDS; i++) {
        make(&all[i], &all[i - 1]);
        all[i].item.fields = all[i].fields;
        all[i].item.text = all[i].text;
        trace_kept_add(k, &all[i].item);
    }
    CHECK(trace_kept_is_whole(k));
    for (size_t i = 1; i <= RECORDS; i++) {
        CHECK(trace_kept_next(k, &at, &item));
        check_same(&item, &all[i].item);
    }
    CHECK(!trace_kept_next(k, &at, &item));
    CHECK(!trace_kept_next(k, &at, &item));
    trace_kept_destroy(k);
    free(all);
}

TEST(too_many_are_not_kept)
{
    struct trace_kept *k = trace_kept_create(1 << 20);
    uint64_t fields[TRACE_FIELDS_MAX] = {0};
    struct trace_item item = {.head = {.kind = TRACE_LAUNCH, .fields = 2},
                              .fields = fields,
                              .text = ""};

    for (uint64_t i = 0; i < 1 << 16; i++) {
        item.ordinal = item.head.time_ns = fields[1] = i;
        trace_kept_add(k, &item);
        CHECK(trace_kept_bytes(k) <= 1 << 20);
    }
    CHECK(!trace_kept_is_whole(k));
    trace_kept_destroy(k);
}

TEST(repetitions_take_a_few_bytes)
{
    struct trace_kept *k = trace_kept_create(SIZE_MAX);
    uint64_t fields[TRACE_FIELDS_MAX] = {0};
    struct trace_item item = {.head = {.kind = TRACE_LAUNCH, .fields = 9},
                              .fields = fields,
                              .text = ""};

    for (uint64_t i = 0; i < 1000000; i++) {
        item.ordinal = i;
        item.head.time_ns = i * 9000;
        fields[8] = i % 1000 + 1;
        trace_kept_add(k, &item);
    }
    CHECK(trace_kept_bytes(k) < 5000000);
    trace_kept_destroy(k);
}
