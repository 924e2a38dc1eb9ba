/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/tracker.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

/* Blocks of one size that the same work used first.
 *
 * `count` changes with every block; what it was at the last peak is kept in
 * `count_at_peak`, written late: only when the group first changes after that
 * peak (`seen` lags behind the tracker's `peaks`). */
struct group {
    struct label label;
    uint64_t bytes;
    uint64_t count, count_at_peak;
    uint64_t seen;
    struct group *next; /* of those with the same key in the map */
};

static uint64_t group_key(const struct label *label, uint64_t bytes)
{
    const uint64_t words[] = {label->kind,
                              label->name,
                              label->numbers[0],
                              label->numbers[1],
                              label->numbers[2],
                              label->numbers[3],
                              bytes};
    uint64_t key = 0;

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        key = (key ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ key >> 29;
    return key;
}

static uint64_t group_at_peak(const struct tracker *t, const struct group *g)
{
    return g->seen < t->peaks ? g->count : g->count_at_peak;
}

/* To be called before a group changes. */
static void group_touch(const struct tracker *t, struct group *g)
{
    g->count_at_peak = group_at_peak(t, g);
    g->seen = t->peaks;
}

static struct group *group_find(struct group *chain, const struct label *label,
                                uint64_t bytes)
{
    while (chain && (chain->bytes != bytes ||
                     memcmp(&chain->label, label, sizeof *label)))
        chain = chain->next;
    return chain;
}

/* Takes out the groups that are empty now and were so at the peak. */
static void groups_sweep(struct tracker *t)
{
    struct map old = t->groups;
    size_t cursor = 0;

    t->groups = (struct map){0};
    t->group_count = 0;
    for (struct group *g; (g = map_next(&old, &cursor));)
        for (struct group *next; g; g = next) {
            next = g->next;
            if (!g->count && !group_at_peak(t, g)) {
                free(g);
                continue;
            }
            g->next = map_put(&t->groups, group_key(&g->label, g->bytes), g);
            t->group_count++;
        }
    map_fini(&old);
    t->sweep_at = 2 * t->group_count + 1024;
}

static struct group *group_get(struct tracker *t, const struct label *label,
                               uint64_t bytes)
{
    uint64_t key = group_key(label, bytes);
    struct group *g = group_find(map_get(&t->groups, key), label, bytes);

    if (g)
        return g;
    if (t->group_count >= t->sweep_at)
        groups_sweep(t);
    g = xmalloc(sizeof *g);
    *g = (struct group){.label = *label, .bytes = bytes, .seen = t->peaks};
    g->next = map_put(&t->groups, key, g);
    t->group_count++;
    return g;
}

void block_wait(struct block *b, struct block **list)
{
    b->next = *list;
    b->previous = list;
    if (b->next)
        b->next->previous = &b->next;
    *list = b;
}

void block_wait_end(struct block *b)
{
    if (!b->previous)
        return;
    *b->previous = b->next;
    if (b->next)
        b->next->previous = b->previous;
    b->previous = NULL;
}

void block_drop(struct block *b)
{
    struct tracker *t = b->tracker;

    block_wait_end(b);
    group_touch(t, b->group);
    b->group->count--;
    t->current_bytes -= b->group->bytes;
    free(b);
}

void block_label(struct block *b, const struct label *label)
{
    struct tracker *t = b->tracker;
    struct group *old = b->group;
    struct group *new = group_get(t, label, old->bytes);
    bool at_peak = b->born < t->peaks;

    group_touch(t, old);
    group_touch(t, new);
    old->count--;
    new->count++;
    old->count_at_peak -= at_peak;
    new->count_at_peak += at_peak;
    b->group = new;
}

struct block *tracker_add(struct tracker *t, uint64_t bytes,
                          uint64_t requested_bytes)
{
    static const struct label nothing;
    struct block *b = xcalloc(1, sizeof *b);

    b->tracker = t;
    b->requested_bytes = requested_bytes;
    b->born = t->peaks;
    b->group = group_get(t, &nothing, bytes);
    group_touch(t, b->group);
    b->group->count++;
    t->current_bytes += bytes;
    return b;
}

void tracker_raise(struct tracker *t, uint64_t peak_bytes)
{
    t->peaks++;
    t->peak_bytes = peak_bytes;
}

int thing_compare(const void *x, const void *y)
{
    const struct peak_thing *a = x, *b = y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->label, b->label);
}

static int thing_compare_label(const void *x, const void *y)
{
    const struct peak_thing *a = x, *b = y;
    uint64_t a_each = a->bytes / a->count, b_each = b->bytes / b->count;

    if (a_each != b_each)
        return a_each < b_each ? 1 : -1;
    return strcmp(a->label, b->label);
}

/* Makes one of those that read alike: a kernel's variants, say. */
static size_t things_unite(struct peak_thing *things, size_t count)
{
    size_t kept = 0;

    qsort(things, count, sizeof *things, thing_compare_label);
    for (size_t i = 0; i < count; i++) {
        if (kept && !thing_compare_label(&things[kept - 1], &things[i])) {
            things[kept - 1].bytes += things[i].bytes;
            things[kept - 1].count += things[i].count;
        } else {
            things[kept++] = things[i];
        }
    }
    return kept;
}

size_t tracker_things(const struct tracker *t, const struct trace_names *names,
                      struct peak_thing **things)
{
    size_t cursor = 0, capacity = 0, count = 0;

    *things = NULL;
    for (struct group *g; (g = map_next(&t->groups, &cursor));)
        for (; g; g = g->next) {
            uint64_t blocks = group_at_peak(t, g);
            if (!blocks)
                continue;
            xgrow(things, count, &capacity, sizeof **things);
            struct peak_thing *thing = &(*things)[count++];
            *thing = (struct peak_thing){.bytes = g->bytes * blocks,
                                           .count = blocks};
            label_format(&g->label, names, thing->label, sizeof thing->label);
        }
    if (!count)
        return 0;
    count = things_unite(*things, count);
    qsort(*things, count, sizeof **things, thing_compare);
    return count;
}

void tracker_fini(struct tracker *t)
{
    size_t cursor = 0;

    for (struct group *g; (g = map_next(&t->groups, &cursor));)
        for (struct group *next; g; g = next) {
            next = g->next;
            free(g);
        }
    map_fini(&t->groups);
}
