/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/replay_scale.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/replay/replay_repeat_internal.h"

#define POINTS     REPLAY_REPEAT_BEGINS
#define POINTS_MIN 3
#define STEPS      2 /* the first one has the batch of the recording */
#define TOLERANCE  0.001 /* of the largest request, but for ... */
#define ROUNDED    1024  /* bytes, which some requests are rounded to */

/* What one request was in the steps. */
struct points {
    double n[POINTS], bytes[POINTS];
    size_t count;
    size_t least, middle, most; /* three with different n, if they are there */
    bool three;
};

struct law {
    double constant, linear, square;
    double unit; /* bytes that it is rounded up to; 0: none */
};

static double law_at(const struct law *law, double n)
{
    double bytes = law->constant + n * (law->linear + n * law->square);

    /* what is whole but for the last digit of a double is whole */
    return law->unit > 0 ? ceil(bytes / law->unit - 1e-9) * law->unit : bytes;
}

static void points_span(struct points *p)
{
    p->least = p->most = 0;
    for (size_t i = 1; i < p->count; i++) {
        if (p->n[i] < p->n[p->least])
            p->least = i;
        if (p->n[i] > p->n[p->most])
            p->most = i;
    }
    double half = (p->n[p->least] + p->n[p->most]) / 2, best = INFINITY;
    for (size_t i = 0; i < p->count; i++)
        if (p->n[i] > p->n[p->least] && p->n[i] < p->n[p->most] &&
            fabs(p->n[i] - half) < best) {
            best = fabs(p->n[i] - half);
            p->middle = i;
        }
    p->three = best < INFINITY;
}

/* Through the smallest and the largest. */
static struct law law_line(const struct points *p)
{
    double n = p->n[p->least], width = p->n[p->most] - n;
    double slope = (p->bytes[p->most] - p->bytes[p->least]) / width;

    return (struct law){p->bytes[p->least] - slope * n, slope, 0, 0};
}

/* Through these and one in the middle: Newton's form. */
static struct law law_parabola(const struct points *p)
{
    double a = p->n[p->least], b = p->n[p->middle], c = p->n[p->most];
    double first = (p->bytes[p->middle] - p->bytes[p->least]) / (b - a);
    double second = (p->bytes[p->most] - p->bytes[p->middle]) / (c - b);
    double square = (second - first) / (c - a);

    return (struct law){p->bytes[p->least] - first * a + square * a * b,
                        first - square * (a + b), square, 0};
}

/* The largest unit of which all are multiples. */
static double points_unit(const struct points *p)
{
    uint64_t unit = 0;

    for (size_t i = 0; i < p->count; i++)
        for (uint64_t rest = (uint64_t)p->bytes[i]; rest;) {
            uint64_t next = unit % rest;
            unit = rest;
            rest = next;
        }
    return (double)unit;
}

/* In proportion to n, in whole units: partial sums of so many rows each. */
static struct law law_units(const struct points *p)
{
    double rate = INFINITY;

    for (size_t i = 0; i < p->count; i++)
        rate = fmin(rate, p->bytes[i] / p->n[i]);
    return (struct law){0, rate, 0, points_unit(p)};
}

static bool law_holds(const struct points *p, const struct law *law)
{
    double allowed = TOLERANCE * p->bytes[p->most];

    if (allowed < ROUNDED)
        allowed = ROUNDED;
    for (size_t i = 0; i < p->count; i++)
        if (fabs(law_at(law, p->n[i]) - p->bytes[i]) > allowed)
            return false;
    return law->square >= 0;
}

/* A line that holds through three n; else a parabola or units that hold through
 * more; false: none does. */
static bool law_find(const struct points *p, struct law *law)
{
    if (!p->three)
        return false;
    *law = law_line(p);
    if (law_holds(p, law))
        return true;
    if (p->count == 3)
        return false;
    *law = law_parabola(p);
    if (law_holds(p, law))
        return true;
    *law = law_units(p);
    return law->unit * POINTS_MIN < p->bytes[p->least] && law_holds(p, law);
}

/* --- the steps ------------------------------------------------------------ */

/* The place of the first taking call from FIRST on; there is one. */
static size_t taken_place(const struct call_list *calls, size_t first)
{
    while (!call_takes(&calls->all[first].op))
        first++;
    return first;
}

/* Steps that ask for the same as the last complete one does, that one first. */
struct alike {
    size_t begins[POINTS]; /* the places of their first calls ... */
    double own[POINTS];    /* n of each, and of the step that follows it; */
    double next[POINTS];   /* 0: not known */
    size_t count;
};

static void alike_find(const struct replay_repeat *r,
                       const struct call_list *calls, const uint64_t *sizes,
                       struct alike *a)
{
    size_t middle = calls_step(r, calls, 1);

    a->count = 0;
    for (size_t back = 1; back < r->begin_count; back++) {
        size_t begin = calls_step(r, calls, back);
        size_t i = r->begin_count - 1 - back;
        if (!sizes[i] || !calls_alike(calls, begin,
                                      calls_step(r, calls, back - 1), middle,
                                      false))
            continue;
        a->begins[a->count] = begin;
        a->own[a->count] = (double)sizes[i];
        a->next[a->count++] = (double)sizes[i + 1];
    }
}

/* The bytes of a workspace that PyTorch chooses by itself, or that is not
 * certain, follow no law: the most that was recorded. */
static double most_of(const struct points *p)
{
    double most = 0;

    for (size_t i = 0; i < p->count; i++)
        most = fmax(most, p->bytes[i]);
    return most;
}

static bool is_workspace(const struct replay_op *op)
{
    return op->plan || op->most_bytes;
}

/* What the next taking call of each step of A asks for: moves A's places behind
 * it. */
static void points_read(const struct call_list *calls, struct alike *a,
                        struct points *own)
{
    own->count = 0;
    for (size_t i = 0; i < a->count; i++) {
        size_t place = taken_place(calls, a->begins[i]);

        own->n[own->count] = a->own[i];
        own->bytes[own->count++] = (double)calls->all[place].op.bytes;
        a->begins[i] = place + 1;
    }
    points_span(own);
}

/* The same by n of the step that follows: a batch is made before the forward
 * that begins its step. */
static void points_shift(const struct alike *a, const struct points *own,
                         struct points *next)
{
    next->count = 0;
    for (size_t i = 0; i < own->count; i++) {
        if (!a->next[i])
            continue;
        next->n[next->count] = a->next[i];
        next->bytes[next->count++] = own->bytes[i];
    }
    if (next->count)
        points_span(next);
}

/* The bytes of the next taking call at WANTED; 0: it has no law. */
static uint64_t call_scale(const struct replay_op *op,
                           const struct call_list *calls, struct alike *a,
                           double wanted)
{
    struct points own, next = {.three = false};
    struct law law;
    double bytes = 0;

    points_read(calls, a, &own);
    points_shift(a, &own, &next);
    if (law_find(&own, &law) || law_find(&next, &law))
        bytes = law_at(&law, wanted);
    else if (!is_workspace(op))
        return 0;
    if (bytes < most_of(&own)) /* what falls has an end that is not known */
        bytes = most_of(&own);
    return bytes >= 1 && bytes < 1e15 ? (uint64_t)llround(bytes) : 0;
}

/* R's calls become those of the last step, as large as WANTED makes them. */
static bool steps_scale(struct replay_repeat *r, const struct call_list *calls,
                        const uint64_t *sizes, uint64_t wanted)
{
    size_t middle = calls_step(r, calls, 1), first = calls_step(r, calls, 2);
    struct alike alike;

    alike_find(r, calls, sizes, &alike);
    if (alike.count < POINTS_MIN ||
        !calls_alike(calls, first, middle, middle, false) ||
        !calls_choose(r, calls, first, middle))
        return false;
    for (size_t i = 0; i < r->calls.count; i++) {
        struct replay_op *op = &r->calls.all[i].op;
        if (!call_takes(op))
            continue;
        op->bytes = call_scale(op, calls, &alike, (double)wanted);
        op->least_bytes = op->most_bytes = 0;
        if (!op->bytes)
            return false;
    }
    return true;
}

/* The recording ends a step earlier. */
static void steps_shorten(struct replay_repeat *r, struct call_list *calls)
{
    r->calls.count = 0;
    r->begin_count--;
    r->end = r->begins[r->begin_count - 1];
    while (calls->count && calls->all[calls->count - 1].op.index >= r->end)
        calls->count--;
}

int replay_scale_create(struct replay_repeat **scale,
                        const struct replay_source *source,
                        const struct replay_steps *steps, uint64_t wanted,
                        struct err *err)
{
    struct replay_repeat *r =
        repeat_make(source, steps->begins, steps->count, 0);
    const uint64_t *sizes = steps->sizes + steps->count - r->begin_count;
    struct call_list calls = {0};

    *scale = NULL;
    int rc = calls_read(r, &calls, err);
    while (!rc && !*scale && r->begin_count > POINTS_MIN) {
        if (steps_scale(r, &calls, sizes, wanted))
            *scale = r;
        else
            steps_shorten(r, &calls);
    }
    if (*scale) {
        r->steps = 1;
        r->most = STEPS * r->calls.count;
        r = NULL;
    }
    replay_repeat_destroy(r);
    free(calls.all);
    return rc;
}
