/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/attribution/attribute_internal.h"

/* Backward and the recomputation within it alternate, once a checkpoint: each
 * of them is one phase. The row of PHASE to go on with, or NULL. */
static struct phase_row *row_to_resume(struct phase_list *l,
                                       enum trace_phase_kind phase,
                                       unsigned step)
{
    for (size_t i = l->count; i-- > 0 && i + 2 >= l->count;) {
        struct phase_row *row = &l->rows[i];
        if (row->told.step != step ||
            (row->told.phase != TRACE_PHASE_BACKWARD &&
             row->told.phase != TRACE_PHASE_RECOMPUTE))
            return NULL;
        if (row->told.phase == phase)
            return row;
    }
    return NULL;
}

/* --- what modules held ---------------------------------------------------- */

static void holds_release(struct holds *held)
{
    free(held->bytes);
    *held = (struct holds){NULL, 0};
}

static void holds_take(struct holds *held, const struct holdings *h)
{
    held->bytes = xreallocarray(held->bytes, h->count + 1, sizeof *held->bytes);
    held->count = h->count;
    for (size_t id = 0; id < h->count; id++)
        held->bytes[id] = h->rows[id].self_bytes;
}

static void holds_add(struct holds *held, uint32_t id, uint64_t bytes)
{
    if (!id || id >= MODULES_MAX)
        return;
    if (id >= held->count) {
        size_t count = (size_t)id + id / 2 + 64;
        held->bytes = xreallocarray(held->bytes, count, sizeof *held->bytes);
        memset(held->bytes + held->count, 0,
               (count - held->count) * sizeof *held->bytes);
        held->count = count;
    }
    held->bytes[id] += bytes;
}

/* How many phases are kept at either end. */
static size_t held_phases(const struct holdings *h)
{
    size_t phases = HELD_MODULES / (h->count + 1);

    return phases > HELD_PHASES ? HELD_PHASES : phases ? phases : 1;
}

/* ROW is neither of the first phases nor of the last ones any more. */
static void row_pass(struct phase_list *l, struct phase_row *row)
{
    struct phase_row *largest = NULL;

    for (size_t i = 0; i < l->count && !largest; i++)
        if (l->rows[i].largest)
            largest = &l->rows[i];
    if (largest && attribution_sum(&largest->told.end) >=
                       attribution_sum(&row->told.end)) {
        holds_release(&row->held);
        return;
    }
    if (largest) {
        holds_release(&largest->held);
        largest->largest = false;
    }
    row->largest = true;
}

static void rows_pass(struct phase_list *l, const struct holdings *h)
{
    size_t phases = held_phases(h);

    for (size_t i = l->count; i-- > phases;) {
        if (i + phases >= l->count || l->rows[i].largest)
            continue;
        if (!l->rows[i].held.bytes)
            return;
        row_pass(l, &l->rows[i]);
    }
}

/* --- phases --------------------------------------------------------------- */

static void row_end(struct phase_row *row, const struct moment *now,
                    const struct memory_now *memory)
{
    row->told.end_ns = now->time_ns;
    row->told.end = *memory->current;
    row->end_ordinal = now->ordinal;
    holds_take(&row->held, memory->holdings);
}

/* Makes room by dropping rows from the middle: the first steps tell how a run
 * settles, the last ones how it ended. */
static void rows_drop(struct phase_list *l)
{
    const size_t first = PHASES_MAX / 2;
    size_t kept = first;

    for (size_t i = first; i < l->count; i++)
        if (i >= first + PHASES_DROP || l->rows[i].largest)
            l->rows[kept++] = l->rows[i];
    l->dropped += l->count - kept;
    l->count = kept;
}

static void row_to_end(struct phase_list *l, struct phase_row *row)
{
    struct phase_row kept = *row, *last = &l->rows[l->count - 1];

    *row = *last;
    *last = kept;
}

void phase_list_begin(struct phase_list *l, const struct moment *now,
                      enum trace_phase_kind phase, unsigned step,
                      const struct memory_now *memory)
{
    if (l->count)
        row_end(&l->rows[l->count - 1], now, memory);
    struct phase_row *row = row_to_resume(l, phase, step);
    if (row) {
        row_to_end(l, row);
        return;
    }
    if (!l->rows)
        l->rows = xcalloc(PHASES_MAX, sizeof *l->rows);
    if (l->count == PHASES_MAX)
        rows_drop(l);
    l->rows[l->count++] =
        (struct phase_row){.told = {.step = step,
                                    .phase = phase,
                                    .start_ns = now->time_ns,
                                    .peak_bytes = now->allocated_bytes},
                           .end_ordinal = UINT64_MAX};
    rows_pass(l, memory->holdings);
}

void phase_list_peak(struct phase_list *l, uint64_t allocated_bytes)
{
    struct attribution_phase *last =
        l->count ? &l->rows[l->count - 1].told : NULL;

    if (last && allocated_bytes > last->peak_bytes)
        last->peak_bytes = allocated_bytes;
}

/* Only the phases that ended after BORN held it; the two last rows may not be
 * in the order of their ends. */
void phase_list_refile(struct phase_list *l, uint64_t born,
                       enum trace_category from, enum trace_category to,
                       uint64_t bytes)
{
    for (size_t i = l->count; i-- > 0;) {
        struct phase_row *row = &l->rows[i];
        if (row->end_ordinal < born && i + 2 < l->count)
            return;
        if (row->end_ordinal < born || row->end_ordinal == UINT64_MAX)
            continue;
        row->told.end.bytes[from] -= bytes;
        row->told.end.bytes[to] += bytes;
    }
}

void phase_list_move(struct phase_list *l, uint64_t born, uint32_t from,
                     uint32_t to, uint64_t bytes)
{
    for (size_t i = l->count; i-- > 0;) {
        struct phase_row *row = &l->rows[i];
        if (row->end_ordinal < born && i + 2 < l->count)
            return;
        if (row->end_ordinal < born || row->end_ordinal == UINT64_MAX ||
            !row->held.bytes)
            continue;
        holds_add(&row->held, from, -bytes);
        holds_add(&row->held, to, bytes);
    }
}

static int row_compare(const void *x, const void *y)
{
    const struct attribution_phase *a = &((const struct phase_row *)x)->told;
    const struct attribution_phase *b = &((const struct phase_row *)y)->told;

    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->phase < b->phase ? -1 : a->phase > b->phase;
}

/* What HELD has, by the modules of TO, whose parents come before them. */
static uint64_t *modules_held(const struct holds *held, const size_t *places,
                              const struct attribution *to)
{
    if (!held->bytes)
        return NULL;
    uint64_t *bytes = xcalloc(to->module_count + 1, sizeof *bytes);
    for (size_t id = 1; id < held->count; id++)
        if (held->bytes[id])
            bytes[places[id] - 1] = held->bytes[id];
    for (size_t i = to->module_count; i-- > 0;)
        if (to->modules[i].parent != SIZE_MAX)
            bytes[to->modules[i].parent] += bytes[i];
    return bytes;
}

void phase_list_conclude(struct phase_list *l, const struct moment *now,
                         const struct memory_now *memory, const size_t *places,
                         struct attribution *to)
{
    if (l->count)
        row_end(&l->rows[l->count - 1], now, memory);
    qsort(l->rows, l->count, sizeof *l->rows, row_compare);
    to->phases = xcalloc(l->count + 1, sizeof *to->phases);
    to->phase_count = l->count;
    to->phases_dropped = l->dropped;
    for (size_t i = 0; i < l->count; i++) {
        to->phases[i] = l->rows[i].told;
        to->phases[i].module_bytes = modules_held(&l->rows[i].held, places, to);
    }
}

void phase_list_fini(struct phase_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        holds_release(&l->rows[i].held);
    free(l->rows);
}
