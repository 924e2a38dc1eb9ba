/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/history.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/xmalloc.h"

static struct history_run *run_last(const struct history *h)
{
    return h->run_count ? &h->runs[h->run_count - 1] : NULL;
}

/* Keeps the blocks from the one at FROM on that KEEP says. */
static size_t blocks_keep(struct history *h, size_t from,
                          bool (*keep)(const struct history_block *b,
                                       uint64_t limit),
                          uint64_t limit)
{
    size_t kept = from;

    for (size_t i = from; i < h->count; i++)
        if (keep(&h->blocks[i], limit))
            h->blocks[kept++] = h->blocks[i];
    size_t dropped = h->count - kept;
    h->count = kept;
    return dropped;
}

static bool is_large(const struct history_block *b, uint64_t least_bytes)
{
    return b->bytes >= least_bytes;
}

static bool is_older(const struct history_block *b, uint64_t event)
{
    return b->born <= event;
}

static void blocks_thin(struct history *h)
{
    size_t before = 0;

    h->least_bytes = h->least_bytes ? 2 * h->least_bytes : 1024;
    for (size_t i = 0; i < h->mark.count; i++)
        before += is_large(&h->blocks[i], h->least_bytes);
    h->left_out += blocks_keep(h, 0, is_large, h->least_bytes);
    h->mark.count = before;
}

void history_put(struct history *h, const struct history_block *b)
{
    if (b->bytes < h->least_bytes) {
        h->left_out++;
        return;
    }
    xgrow(&h->blocks, h->count, &h->capacity, sizeof *h->blocks);
    h->blocks[h->count++] = *b;
    while (h->count >= 2 * HISTORY_BLOCKS)
        blocks_thin(h);
}

void history_event(struct history *h, const struct moment *now,
                   const struct history_block *b, int64_t bytes)
{
    uint64_t change = bytes < 0 ? 0 - b->requested_bytes : b->requested_bytes;
    const uint64_t words[] = {change, b->module, b->operation};
    struct history_run *run = run_last(h);

    h->requested_bytes += change;
    if (now->allocated_bytes > h->peak_bytes) {
        h->peak_bytes = now->allocated_bytes;
        h->peak_event = now->events;
    }
    if (run)
        run->hash = hash_bytes(run->hash, words, sizeof words);
    memory_curve_add(&h->points, now, b->category, bytes);
}

/* The step that ended is like the one before: it is left out. */
static void run_fold(struct history *h)
{
    struct history_run *gone = run_last(h), *kept = gone - 1;

    if (h->peak_event > gone->begin)
        h->peak_event -= gone->begin - kept->begin;
    kept->count += gone->count;
    kept->end = gone->end;
    kept->end_ns = gone->end_ns;
    blocks_keep(h, h->mark.count, is_older, kept->first_end);
    h->left_out = h->mark.left_out;
    memory_curve_rewind(&h->points, h->mark.ordinal, h->mark.rising);
    h->run_count--;
}

static void history_end(struct history *h, const struct moment *now)
{
    struct history_run *run = run_last(h);

    if (!run)
        return;
    run->end = run->first_end = now->events;
    run->end_ns = run->first_end_ns = now->time_ns;
    const struct history_run *last = h->run_count > 1 ? run - 1 : NULL;
    if (last && last->step != HISTORY_BEFORE && last->hash == run->hash &&
        last->start_bytes == run->start_bytes)
        run_fold(h);
}

void history_conclude(struct history *h, const struct moment *now)
{
    history_end(h, now);
    memory_curve_mark(&h->points, now);
}

void history_step(struct history *h, const struct moment *now, unsigned step)
{
    if (h->run_count == HISTORY_RUNS) { /* the rest is one */
        h->runs[h->run_count - 1].count++;
        return;
    }
    history_end(h, now);
    xgrow(&h->runs, h->run_count, &h->run_capacity, sizeof *h->runs);
    h->runs[h->run_count++] = (struct history_run){
        .step = step,
        .count = 1,
        .begin = now->events,
        .begin_ns = now->time_ns,
        .start_bytes = h->requested_bytes,
        .hash = HASH_START,
    };
    memory_curve_mark(&h->points, now);
    h->mark.count = h->count;
    h->mark.left_out = h->left_out;
    h->mark.ordinal = now->ordinal;
    h->mark.rising = h->points.rising;
}

uint64_t history_place(const struct history *h, uint64_t event)
{
    uint64_t gone = 0;

    for (size_t i = 0; i < h->run_count && event > h->runs[i].first_end; i++) {
        const struct history_run *run = &h->runs[i];
        uint64_t end = event < run->end ? event : run->end;
        gone += end - run->first_end;
    }
    return event == UINT64_MAX ? event : event - gone;
}

void history_fini(struct history *h)
{
    free(h->blocks);
    free(h->runs);
    memory_curve_fini(&h->points);
}
