/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/memory_curve.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/xmalloc.h"

/* Points are merged when there are twice as many as will be told. */
#define TURNS_MAX (2 * MEMORY_CURVE_POINTS)

/* The sizes of a false trace wrap around. */
static void change_add(int64_t *to, int64_t bytes)
{
    *to = (int64_t)((uint64_t)*to + (uint64_t)bytes);
}

static void changes_add(int64_t *to, const int64_t *from)
{
    for (size_t i = 0; i < TRACE_CATEGORY_COUNT; i++)
        change_add(&to[i], from[i]);
}

/* The last turn moves on to NOW, with what changed since. */
static void turn_extend(struct memory_curve *t, const struct moment *now)
{
    struct turn *turn = &t->turns[t->count - 1];

    changes_add(turn->changes, t->tail);
    memset(t->tail, 0, sizeof t->tail);
    turn->ordinal = now->ordinal;
    turn->time_ns = now->time_ns;
    turn->events = now->events;
    turn->allocated_bytes = now->allocated_bytes;
    turn->reserved_bytes = now->reserved_bytes;
}

static void turn_append(struct memory_curve *t, const struct moment *now)
{
    xgrow(&t->turns, t->count, &t->capacity, sizeof *t->turns);
    t->turns[t->count++] = (struct turn){.ordinal = 0};
    turn_extend(t, now);
}

/* Where the bytes stand at NOW; the tail holds what changed. */
static void curve_see(struct memory_curve *t, const struct moment *now)
{
    const struct turn *last = t->count ? &t->turns[t->count - 1] : NULL;
    uint64_t bytes = now->allocated_bytes;

    if (!last) {
        turn_append(t, now);
        t->rising = true;
    } else if (t->rising ? bytes >= last->allocated_bytes
                         : bytes <= last->allocated_bytes) {
        turn_extend(t, now);
    } else if ((t->rising ? last->allocated_bytes - bytes
                          : bytes - last->allocated_bytes) >= t->least_bytes) {
        turn_append(t, now);
        t->rising = !t->rising;
    }
}

/* Plays the turns again with twice the least difference. */
static void curve_thin(struct memory_curve *t)
{
    struct memory_curve thin = {.least_bytes =
                                    t->least_bytes ? 2 * t->least_bytes : 512};

    for (size_t i = 0; i < t->count; i++) {
        const struct turn *turn = &t->turns[i];
        changes_add(thin.tail, turn->changes);
        curve_see(&thin, &(struct moment){turn->ordinal, turn->time_ns,
                                          turn->events, turn->allocated_bytes,
                                          turn->reserved_bytes});
    }
    changes_add(thin.tail, t->tail);
    free(t->turns);
    *t = thin;
}

void memory_curve_add(struct memory_curve *t, const struct moment *now,
                      enum trace_category category, int64_t bytes)
{
    change_add(&t->tail[category], bytes);
    curve_see(t, now);
    while (t->count >= TURNS_MAX)
        curve_thin(t);
}

void memory_curve_refile(struct memory_curve *t, uint64_t born,
                         enum trace_category from, enum trace_category to,
                         uint64_t bytes)
{
    size_t at = BISECT(i, t->count, t->turns[i].ordinal < born);
    int64_t *changes = at < t->count ? t->turns[at].changes : t->tail;

    change_add(&changes[from], (int64_t)(0 - bytes));
    change_add(&changes[to], (int64_t)bytes);
}

/* Twice: the last point may still move. */
void memory_curve_mark(struct memory_curve *t, const struct moment *now)
{
    for (unsigned i = 0; i < 2 && t->count; i++)
        turn_append(t, now);
}

void memory_curve_rewind(struct memory_curve *t, uint64_t ordinal, bool rising)
{
    while (t->count && t->turns[t->count - 1].ordinal >= ordinal)
        changes_add(t->tail, t->turns[--t->count].changes);
    t->rising = rising;
}

struct attribution_point *memory_curve_conclude(struct memory_curve *t,
                                                size_t *count)
{
    struct attribution_sums sums = {{0}};

    while (t->count > MEMORY_CURVE_POINTS)
        curve_thin(t);
    struct attribution_point *points = xcalloc(t->count + 1, sizeof *points);
    *count = t->count;
    for (size_t i = 0; i < t->count; i++) {
        const struct turn *turn = &t->turns[i];
        for (size_t c = 0; c < TRACE_CATEGORY_COUNT; c++)
            sums.bytes[c] += (uint64_t)turn->changes[c];
        points[i] = (struct attribution_point){turn->time_ns, turn->events,
                                               turn->reserved_bytes, sums};
    }
    return points;
}

void memory_curve_fini(struct memory_curve *t)
{
    free(t->turns);
}
