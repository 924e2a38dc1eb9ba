/* SPDX-License-Identifier: Apache-2.0 */
#include "commfit/bench.h"
#include "common/base/simulated.h"
#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 1024

static const char *const reason_texts[BENCH_REASONS] = {
    [BENCH_UNREADABLE] = "unreadable row",
    [BENCH_NOT_FINITE] = "N/A, nan or inf instead of a time",
    [BENCH_NO_TIME] = "time is less than 1 ns, or more than 30 years",
    [BENCH_EMPTY] = "size 0: nothing was sent",
    [BENCH_WRONG] = "wrong results (#wrong is not 0)",
    [BENCH_ALGBW] = "algbw is not size / time",
    [BENCH_UNITS] = "units contradict the header (us, GB/s)",
    [BENCH_BUSBW] = "busbw / algbw contradicts the rank count",
    [BENCH_WORLD] = "ranks do not divide over the nodes",
    [BENCH_ONE_RANK] = "one rank: nothing is communicated",
    [BENCH_UNKNOWN] = "collective cannot be told",
    [BENCH_ALONE] = "the only size of its curve",
};

const char *bench_reason_text(enum bench_reason reason)
{
    return reason_texts[reason];
}

void bench_init(struct bench *b)
{
    *b = (struct bench){
        .slots = xcalloc(SLOTS_FIRST, sizeof *b->slots),
        .slot_count = SLOTS_FIRST,
        .node_gpus = 8,
        .random = UINT64_C(0x9e3779b97f4a7c15),
    };
}

void bench_fini(struct bench *b)
{
    for (size_t i = 0; i < b->point_count; i++)
        free(b->points[i].us);
    free(b->points);
    free(b->slots);
}

static bool same_point(const struct bench_point *p, const struct bench_row *r)
{
    return p->coll == r->coll && p->nodes == r->nodes && p->gpus == r->gpus &&
           p->bytes == r->bytes && p->in_place == r->in_place &&
           p->by_rank == r->by_rank;
}

static uint64_t mix_hash(uint64_t h, uint64_t value)
{
    h = (h ^ value) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ (h >> 32);
}

static uint64_t row_hash(const struct bench_row *r)
{
    uint64_t h = mix_hash(r->coll, r->nodes);

    h = mix_hash(h, r->gpus);
    h = mix_hash(h, r->bytes);
    return mix_hash(h, (uint64_t)r->in_place << 1 | r->by_rank);
}

/* The slot of ROW's point, or the free one where it belongs. */
static uint32_t *slot_find(const struct bench *b, const struct bench_row *row)
{
    size_t i = row_hash(row) & (b->slot_count - 1);

    while (b->slots[i] && !same_point(&b->points[b->slots[i] - 1], row))
        i = (i + 1) & (b->slot_count - 1);
    return &b->slots[i];
}

static struct bench_row row_of(const struct bench_point *p)
{
    return (struct bench_row){
        .coll = p->coll,
        .nodes = p->nodes,
        .gpus = p->gpus,
        .bytes = p->bytes,
        .in_place = p->in_place,
        .by_rank = p->by_rank,
    };
}

static void slots_grow(struct bench *b)
{
    free(b->slots);
    b->slot_count *= 2;
    b->slots = xcalloc(b->slot_count, sizeof *b->slots);
    for (size_t i = 0; i < b->point_count; i++) {
        struct bench_row row = row_of(&b->points[i]);

        *slot_find(b, &row) = (uint32_t)i + 1;
    }
}

static struct bench_point *point_find(struct bench *b,
                                      const struct bench_row *row)
{
    uint32_t *slot = slot_find(b, row);

    if (*slot)
        return &b->points[*slot - 1];
    if (b->point_count >= BENCH_POINTS_MAX)
        return NULL;
    if (2 * b->point_count >= b->slot_count) {
        slots_grow(b);
        slot = slot_find(b, row);
    }
    xgrow(&b->points, b->point_count, &b->point_capacity, sizeof *b->points);
    b->points[b->point_count] = (struct bench_point){
        .coll = row->coll,
        .nodes = row->nodes,
        .gpus = row->gpus,
        .bytes = row->bytes,
        .in_place = row->in_place,
        .by_rank = row->by_rank,
    };
    *slot = (uint32_t)++b->point_count;
    return &b->points[b->point_count - 1];
}

/* Where this sample goes: the next place, or by chance an earlier one's, so
 * that all have the same chance to stay; BENCH_SAMPLES: nowhere. */
static uint32_t sample_place(struct bench *b, struct bench_point *p)
{
    if (p->kept < BENCH_SAMPLES)
        return p->kept++;
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    uint64_t place = b->random % p->count;
    return place < BENCH_SAMPLES ? (uint32_t)place : BENCH_SAMPLES;
}

int bench_add(struct bench *b, const struct bench_row *row, struct err *err)
{
    struct bench_point *p = point_find(b, row);

    if (!p)
        return err_set(err, "more than %u different points; fit fewer files",
                       BENCH_POINTS_MAX);
    p->count++;
    b->rows++;
    uint32_t place = sample_place(b, p);
    if (place == BENCH_SAMPLES)
        return 0;
    if (p->kept > p->capacity) {
        p->capacity = p->capacity ? 2 * p->capacity : 1;
        p->us = xreallocarray(p->us, p->capacity, sizeof *p->us);
    }
    p->us[place] = row->us;
    return 0;
}

static void copy_printable(char *to, size_t size, const char *from)
{
    size_t n = 0;

    for (; *from && n + 1 < size; from++)
        to[n++] = isprint((unsigned char)*from) ? *from : ' ';
    to[n] = '\0';
}

/* A line may hold a row of each placement. */
static bool same_drop(const struct bench_drop *d, enum bench_reason reason,
                      const char *source, uint64_t line)
{
    return line && d->line == line && d->reason == reason &&
           !strncmp(d->source, source, sizeof d->source - 1);
}

void bench_drop(struct bench *b, enum bench_reason reason, const char *source,
                uint64_t line, const char *text)
{
    struct bench_drop *d = &b->drops[b->drops_shown];

    b->dropped[reason]++;
    b->drop_count++;
    if (b->drops_shown && same_drop(d - 1, reason, source, line)) {
        b->drops_told++;
        return;
    }
    if (b->drops_shown == BENCH_DROPS_SHOWN)
        return;
    b->drops_shown++;
    b->drops_told++;
    d->reason = reason;
    d->line = line;
    copy_printable(d->source, sizeof d->source, source);
    copy_printable(d->text, sizeof d->text, text);
}

void bench_note(struct bench *b, const char *format, ...)
{
    char text[sizeof b->notes[0].text];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_make_printable(text);
    for (size_t i = 0; i < b->note_count; i++)
        if (!strcmp(b->notes[i].text, text))
            return;
    if (b->note_count < sizeof b->notes / sizeof *b->notes)
        memcpy(b->notes[b->note_count++].text, text, sizeof text);
}

int bench_simulated(struct bench *b, const char *file, struct err *err)
{
    if (!b->takes_simulated)
        return simulated_refuse(file, err);
    bench_note(b, SIMULATED_NOTE, file);
    return 0;
}

void bench_fail(struct bench *b, const char *source, uint64_t line,
                const char *text)
{
    char shown[sizeof b->failure / 2];

    copy_printable(shown, sizeof shown, text);
    if (!b->failure[0])
        snprintf(b->failure, sizeof b->failure, "%.60s:%llu: %s", source,
                 (unsigned long long)line, shown);
    bench_note(b, "a run failed, rows may be missing: %.60s:%llu: %s", source,
               (unsigned long long)line, shown);
}

#define COMPARE(field)                                                         \
    if (x->field != y->field)                                                  \
    return x->field < y->field ? -1 : 1

static int compare_points(const void *a, const void *b)
{
    const struct bench_point *x = a, *y = b;

    COMPARE(coll);
    COMPARE(gpus);
    COMPARE(nodes);
    COMPARE(bytes);
    COMPARE(in_place);
    COMPARE(by_rank);
    return 0;
}

void bench_sort(struct bench *b)
{
    if (b->point_count)
        qsort(b->points, b->point_count, sizeof *b->points, compare_points);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_sort_values(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
}
