/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/peak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/map.h"
#include "common/xmalloc.h"
#include "memsim/label.h"

/* Fields by their place in trace.h. */
enum { ALLOC_DEVICE, ALLOC_ADDRESS, ALLOC_REQUESTED, ALLOC_BYTES };
enum { ALLOC_ALLOCATED = 5, ALLOC_RESERVED };
enum { FREE_DEVICE, FREE_ADDRESS };
enum { MALLOC_DEVICE, MALLOC_ADDRESS, MALLOC_BYTES };
enum { DEVICE_DEVICE, DEVICE_CARD = 3 };
enum { WORK_DEVICE = 1, TRANSFER_DEVICE = 0 };
enum { CALL_NAME, CALL_WORKSPACE = 4 };

#define PEAK_THINGS 64 /* told one by one */

/* Blocks of one size that the same work used first.
 *
 * `count` changes with every block; what it was at the last peak is kept in
 * `count_at_peak`, written late: only when the group first changes after that
 * peak (`seen` lags behind the tracker's `peaks`). So a new peak costs nothing,
 * however many blocks are live. */
struct group {
    struct label label;
    uint64_t bytes;
    uint64_t count, count_at_peak;
    uint64_t seen;
    struct group *next; /* of those with the same key in the map */
};

/* One allocator's blocks on one card. */
struct tracker {
    struct map groups; /* by group_key */
    size_t group_count;
    size_t sweep_at; /* groups, when to look for empty ones */
    size_t live;     /* blocks */
    uint64_t peaks;  /* how often the peak was raised */
    uint64_t current_bytes, peak_bytes;
};

struct block {
    uint64_t requested_bytes;
    uint64_t born; /* the tracker's `peaks` before it was counted */
    struct tracker *tracker;
    struct group *group;
    struct block *next, **previous; /* of those that nothing has used yet */
};

struct card {
    struct tracker torch, raw; /* the caching allocator; cudaMalloc */
    uint64_t reserved_bytes, outside_bytes; /* at torch's peak */
};

/* Blocks that wait for work of their thread on their device. */
struct waiting {
    struct block *first;
};

struct analysis {
    struct card cards[SESSION_DEVICES];
    unsigned card_of[SESSION_DEVICES]; /* by the process's own numbering */
    struct map torch, raw;             /* struct block by block_key */
    struct map waiting;                /* struct waiting by thread_key */
    struct trace_names names;
};

static uint64_t block_key(uint64_t device, uint64_t address)
{
    return address ^ device << 56; /* addresses have 48 bits */
}

static uint64_t thread_key(const struct trace_item *item, uint64_t device)
{
    return trace_pack(item->head.thread, (uint32_t)device);
}

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

/* Takes the groups out that are empty now and were at the peak. */
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

static void waiting_push(struct analysis *a, uint64_t key, struct block *b)
{
    struct waiting *w = map_get(&a->waiting, key);

    if (!w) {
        w = xcalloc(1, sizeof *w);
        map_put(&a->waiting, key, w);
    }
    b->next = w->first;
    b->previous = &w->first;
    if (b->next)
        b->next->previous = &b->next;
    w->first = b;
}

static void waiting_remove(struct block *b)
{
    if (!b->previous)
        return;
    *b->previous = b->next;
    if (b->next)
        b->next->previous = b->previous;
    b->previous = NULL;
}

static void block_drop(struct block *b)
{
    struct tracker *t = b->tracker;

    waiting_remove(b);
    group_touch(t, b->group);
    b->group->count--;
    t->current_bytes -= b->group->bytes;
    free(b);
}

/* Moves B, now and, where it was live then, at the peak too. */
static void block_label(struct block *b, const struct label *label)
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

static struct block *block_add(struct tracker *t, uint64_t bytes,
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

/* Puts B in place; a block that lies there already was freed unseen. */
static void block_place(struct map *blocks, uint64_t key, struct block *b)
{
    struct block *stale = map_put(blocks, key, b);

    if (stale)
        block_drop(stale);
}

static struct card *card_get(struct analysis *a, uint64_t device)
{
    if (device >= SESSION_DEVICES)
        return NULL;
    return &a->cards[a->card_of[device]];
}

static void on_device(struct analysis *a, const struct trace_item *item)
{
    uint64_t device = trace_field(item, DEVICE_DEVICE);
    uint64_t card = trace_field(item, DEVICE_CARD);

    if (item->head.fields > DEVICE_CARD && device < SESSION_DEVICES &&
        card < SESSION_DEVICES)
        a->card_of[device] = (unsigned)card;
}

static void on_block_alloc(struct analysis *a, const struct trace_item *item)
{
    uint64_t device = trace_field(item, ALLOC_DEVICE);
    uint64_t allocated_bytes = trace_field(item, ALLOC_ALLOCATED);
    struct card *card = card_get(a, device);

    if (!card)
        return;
    struct tracker *t = &card->torch;
    struct block *b = block_add(t, trace_field(item, ALLOC_BYTES),
                                trace_field(item, ALLOC_REQUESTED));
    waiting_push(a, thread_key(item, device), b);
    block_place(&a->torch, block_key(device, trace_field(item, ALLOC_ADDRESS)),
                b);
    if (allocated_bytes <= t->peak_bytes)
        return;
    t->peaks++;
    t->peak_bytes = allocated_bytes;
    card->reserved_bytes = trace_field(item, ALLOC_RESERVED);
    card->outside_bytes = card->raw.current_bytes > card->reserved_bytes
                              ? card->raw.current_bytes - card->reserved_bytes
                              : 0;
}

static void on_device_malloc(struct analysis *a, const struct trace_item *item)
{
    uint64_t device = trace_field(item, MALLOC_DEVICE);
    uint64_t bytes = trace_field(item, MALLOC_BYTES);
    struct card *card = card_get(a, device);

    if (!card)
        return;
    struct tracker *t = &card->raw;
    struct block *b = block_add(t, bytes, bytes);
    waiting_push(a, thread_key(item, device), b);
    block_place(&a->raw, block_key(device, trace_field(item, MALLOC_ADDRESS)),
                b);
    if (t->current_bytes > t->peak_bytes) {
        t->peaks++;
        t->peak_bytes = t->current_bytes;
    }
}

static void free_from(struct map *blocks, const struct trace_item *item)
{
    struct block *b =
        map_take(blocks, block_key(trace_field(item, FREE_DEVICE),
                                   trace_field(item, FREE_ADDRESS)));

    if (b)
        block_drop(b);
}

static void on_block_free(struct analysis *a, const struct trace_item *item)
{
    free_from(&a->torch, item);
}

static void on_device_free(struct analysis *a, const struct trace_item *item)
{
    free_from(&a->raw, item);
}

static void on_name(struct analysis *a, const struct trace_item *item)
{
    trace_names_add(&a->names, item);
}

/* Names the blocks that waited for this work. */
static void on_work(struct analysis *a, const struct trace_item *item,
                    unsigned device_field)
{
    uint64_t device = trace_field(item, device_field);
    struct waiting *w = map_get(&a->waiting, thread_key(item, device));

    while (w && w->first) {
        struct block *b = w->first;
        struct label label = label_make(item, b->requested_bytes);
        waiting_remove(b);
        block_label(b, &label);
    }
}

static void on_named_work(struct analysis *a, const struct trace_item *item)
{
    on_work(a, item, WORK_DEVICE);
}

/* Lending cuBLAS a block is no work, but says what that block is. */
static void on_library_call(struct analysis *a, const struct trace_item *item)
{
    uint64_t device = trace_field(item, WORK_DEVICE);
    const char *name = trace_names_get(&a->names, trace_field(item, CALL_NAME));

    if (strcmp(name, "cublasSetWorkspace")) {
        on_named_work(a, item);
        return;
    }
    struct block *b = map_get(
        &a->torch, block_key(device, trace_field(item, CALL_WORKSPACE)));
    if (b) {
        struct label label = label_workspace(TRACE_GEMM);
        waiting_remove(b);
        block_label(b, &label);
    }
}

static void on_transfer(struct analysis *a, const struct trace_item *item)
{
    on_work(a, item, TRANSFER_DEVICE);
}

static void (*const handlers[])(struct analysis *,
                                const struct trace_item *) = {
    [TRACE_DEVICE] = on_device,
    [TRACE_NAME] = on_name,
    [TRACE_BLOCK_ALLOC] = on_block_alloc,
    [TRACE_BLOCK_FREE] = on_block_free,
    [TRACE_DEVICE_MALLOC] = on_device_malloc,
    [TRACE_DEVICE_FREE] = on_device_free,
    [TRACE_LAUNCH] = on_named_work,
    [TRACE_GEMM] = on_named_work,
    [TRACE_CONVOLUTION] = on_named_work,
    [TRACE_ATTENTION] = on_named_work,
    [TRACE_LIBRARY_CALL] = on_library_call,
    [TRACE_COLLECTIVE] = on_named_work,
    [TRACE_COPY] = on_transfer,
    [TRACE_SET] = on_transfer,
};

static void analysis_take(struct analysis *a, const struct trace_item *item)
{
    unsigned kind = item->head.kind;

    if (kind < sizeof handlers / sizeof *handlers && handlers[kind])
        handlers[kind](a, item);
}

static void blocks_fini(struct map *blocks)
{
    size_t cursor = 0;

    for (void *b; (b = map_next(blocks, &cursor));)
        free(b);
    map_fini(blocks);
}

static void tracker_fini(struct tracker *t)
{
    size_t cursor = 0;

    for (struct group *g; (g = map_next(&t->groups, &cursor));)
        for (struct group *next; g; g = next) {
            next = g->next;
            free(g);
        }
    map_fini(&t->groups);
}

static void analysis_fini(struct analysis *a)
{
    blocks_fini(&a->torch);
    blocks_fini(&a->raw);
    blocks_fini(&a->waiting);
    for (size_t i = 0; i < SESSION_DEVICES; i++) {
        tracker_fini(&a->cards[i].torch);
        tracker_fini(&a->cards[i].raw);
    }
    trace_names_fini(&a->names);
    free(a);
}

static int thing_compare(const void *x, const void *y)
{
    const struct result_thing *a = x, *b = y;

    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->label, b->label);
}

static int thing_compare_label(const void *x, const void *y)
{
    const struct result_thing *a = x, *b = y;
    uint64_t a_each = a->bytes / a->count, b_each = b->bytes / b->count;

    if (a_each != b_each)
        return a_each < b_each ? 1 : -1;
    return strcmp(a->label, b->label);
}

/* Makes one of those that read alike: a kernel's variants, say. */
static size_t things_unite(struct result_thing *things, size_t count)
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

static void things_collect(struct peak_card *p, const struct tracker *t,
                           const struct trace_names *names)
{
    size_t cursor = 0, capacity = 0;

    for (struct group *g; (g = map_next(&t->groups, &cursor));)
        for (; g; g = g->next) {
            uint64_t count = group_at_peak(t, g);
            if (!count)
                continue;
            xgrow(&p->things, p->thing_count, &capacity, sizeof *p->things);
            struct result_thing *thing = &p->things[p->thing_count++];
            *thing = (struct result_thing){.bytes = g->bytes * count,
                                           .count = count};
            label_format(&g->label, names, thing->label, sizeof thing->label);
        }
    if (!p->thing_count)
        return;
    p->thing_count = things_unite(p->things, p->thing_count);
    qsort(p->things, p->thing_count, sizeof *p->things, thing_compare);
}

static void card_conclude(struct peak_card *p, const struct card *card,
                          const struct trace_names *names)
{
    const struct tracker *t = card->torch.peaks ? &card->torch : &card->raw;

    *p = (struct peak_card){
        .torch = t == &card->torch,
        .allocated_bytes = t->peak_bytes,
        .reserved_bytes = card->reserved_bytes,
        .outside_bytes = card->outside_bytes,
    };
    things_collect(p, t, names);
}

int peak_read(struct peak *peak, struct trace_reader *reader, struct err *err)
{
    struct analysis *a = xcalloc(1, sizeof *a);
    struct trace_item item;
    int rc;

    for (unsigned i = 0; i < SESSION_DEVICES; i++)
        a->card_of[i] = i;
    while ((rc = trace_reader_next(reader, &item, err)) > 0)
        analysis_take(a, &item);
    for (size_t i = 0; !rc && i < SESSION_DEVICES; i++)
        card_conclude(&peak->cards[i], &a->cards[i], &a->names);
    analysis_fini(a);
    return rc;
}

void peak_fini(struct peak *peak)
{
    for (size_t i = 0; i < SESSION_DEVICES; i++)
        free(peak->cards[i].things);
}

static void tell(struct result_device *device, uint64_t bytes,
                 const char *label)
{
    if (!bytes)
        return;
    struct result_thing *t = &device->things[device->thing_count++];
    *t = (struct result_thing){.bytes = bytes};
    snprintf(t->label, sizeof t->label, "%s", label);
}

/* What is beyond the largest ones becomes one. */
static void tell_blocks(struct result_device *device,
                        const struct peak_card *card)
{
    size_t shown =
        card->thing_count < PEAK_THINGS ? card->thing_count : PEAK_THINGS;
    uint64_t rest = 0;

    for (size_t i = 0; i < shown; i++)
        device->things[i] = card->things[i];
    device->thing_count = shown;
    for (size_t i = shown; i < card->thing_count; i++)
        rest += card->things[i].bytes;
    tell(device, rest, "everything smaller");
}

void peak_tell(const struct peak_card *card, struct result_device *device)
{
    free(device->things);
    device->things = xcalloc(PEAK_THINGS + 5, sizeof *device->things);
    tell_blocks(device, card);
    if (card->torch) {
        tell(device,
             card->reserved_bytes > card->allocated_bytes
                 ? card->reserved_bytes - card->allocated_bytes
                 : 0,
             "cached by PyTorch, not in use");
        tell(device, card->outside_bytes, "cudaMalloc outside PyTorch");
    }
    tell(device, device->context_bytes, "CUDA context");
    tell(device, device->libraries_bytes, "CUDA libraries");
    qsort(device->things, device->thing_count, sizeof *device->things,
          thing_compare);
}
