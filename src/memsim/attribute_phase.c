/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/xmalloc.h"
#include "memsim/attribute_internal.h"

/* Backward and the recomputation within it alternate, once a checkpoint: each
 * of them is one phase. The row of PHASE to go on with, or NULL. */
static struct phase_row *row_to_resume(struct phase_list *l,
                                       enum trace_phase phase, unsigned step)
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

static void row_end(struct phase_row *row, const struct moment *now,
                    const struct attribution_sums *current)
{
    row->told.end_ns = now->time_ns;
    row->told.end = *current;
    row->end_ordinal = now->ordinal;
}

/* Makes room by dropping rows from the middle: the first steps tell how a run
 * settles, the last ones how it ended. */
static void rows_drop(struct phase_list *l)
{
    const size_t kept = PHASES_MAX / 2;

    memmove(l->rows + kept, l->rows + kept + PHASES_DROP,
            (l->count - kept - PHASES_DROP) * sizeof *l->rows);
    l->count -= PHASES_DROP;
    l->dropped += PHASES_DROP;
}

static void row_to_end(struct phase_list *l, struct phase_row *row)
{
    struct phase_row kept = *row, *last = &l->rows[l->count - 1];

    *row = *last;
    *last = kept;
}

void phase_list_begin(struct phase_list *l, const struct moment *now,
                      enum trace_phase phase, unsigned step,
                      const struct attribution_sums *current)
{
    if (l->count)
        row_end(&l->rows[l->count - 1], now, current);
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

static int row_compare(const void *x, const void *y)
{
    const struct attribution_phase *a = x, *b = y;

    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    return a->phase < b->phase ? -1 : a->phase > b->phase;
}

void phase_list_conclude(struct phase_list *l, const struct moment *now,
                         const struct attribution_sums *current,
                         struct attribution *to)
{
    if (l->count)
        row_end(&l->rows[l->count - 1], now, current);
    to->phases = xcalloc(l->count + 1, sizeof *to->phases);
    to->phase_count = l->count;
    to->phases_dropped = l->dropped;
    for (size_t i = 0; i < l->count; i++)
        to->phases[i] = l->rows[i].told;
    qsort(to->phases, to->phase_count, sizeof *to->phases, row_compare);
}

void phase_list_fini(struct phase_list *l)
{
    free(l->rows);
}
