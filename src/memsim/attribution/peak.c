/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/peak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "common/trace/size_range.h"
#include "memsim/attribution/attribute.h"
#include "memsim/attribution/label.h"
#include "memsim/attribution/tracker.h"


struct card {
    struct tracker torch, raw; /* the caching allocator; cudaMalloc */
    uint64_t reserved_bytes, outside_bytes; /* at torch's peak */
    struct workspace_range range;
    struct size_ranges sizes;
    bool refused; /* a cudaMalloc of PyTorch's failed last */
    uint64_t retries;
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
    const struct trace_names *names;   /* of the pass */
    struct attribute *attribute;
};

static uint64_t block_key(uint64_t device, uint64_t address)
{
    return address ^ device << 56; /* addresses have 48 bits */
}

static uint64_t thread_key(const struct trace_item *item, uint64_t device)
{
    return trace_pack(item->head.thread, (uint32_t)device);
}

static void waiting_push(struct analysis *a, uint64_t key, struct block *b)
{
    struct waiting *w = map_get(&a->waiting, key);

    if (!w) {
        w = xcalloc(1, sizeof *w);
        map_put(&a->waiting, key, w);
    }
    block_wait(b, &w->first);
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
    const struct trace_device *d = trace_as_device(item);

    if (d->device < SESSION_DEVICES && d->card < SESSION_DEVICES)
        a->card_of[d->device] = (unsigned)d->card;
}

static void on_size_range(struct analysis *a, const struct trace_item *item)
{
    struct card *card = card_get(a, trace_as_size_range(item)->device);

    if (card)
        size_ranges_tell(&card->sizes, item);
}

static void on_block_alloc(struct analysis *a, const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    struct card *card = card_get(a, alloc->device);

    if (!card)
        return;
    struct tracker *t = &card->torch;
    workspace_range_alloc(&card->range, alloc);
    struct block *b =
        tracker_add(t, alloc->block_bytes, alloc->requested_bytes);
    struct size_range size;
    b->address = alloc->address;
    if (size_ranges_take(&card->sizes, item, &size))
        workspace_range_hold(&card->range, &size, &b->under_bytes,
                             &b->over_bytes);
    waiting_push(a, thread_key(item, alloc->device), b);
    block_place(&a->torch, block_key(alloc->device, alloc->address), b);
    if (alloc->allocated_bytes <= t->peak_bytes)
        return;
    tracker_raise(t, alloc->allocated_bytes);
    card->reserved_bytes = alloc->reserved_bytes;
    card->outside_bytes = card->raw.current_bytes > card->reserved_bytes
                              ? card->raw.current_bytes - card->reserved_bytes
                              : 0;
}

static void on_device_malloc(struct analysis *a, const struct trace_item *item)
{
    const struct trace_device_malloc *m = trace_as_device_malloc(item);
    struct card *card = card_get(a, m->device);

    if (!card)
        return;
    struct tracker *t = &card->raw;
    struct block *b = tracker_add(t, m->bytes, m->bytes);
    waiting_push(a, thread_key(item, m->device), b);
    block_place(&a->raw, block_key(m->device, m->address), b);
    if (t->current_bytes > t->peak_bytes)
        tracker_raise(t, t->current_bytes);
}

static void free_from(struct map *blocks, uint64_t device, uint64_t address)
{
    struct block *b = map_take(blocks, block_key(device, address));

    if (b)
        block_drop(b);
}

static void on_block_free(struct analysis *a, const struct trace_item *item)
{
    const struct trace_block_free *freed = trace_as_block_free(item);
    struct card *card = card_get(a, freed->device);
    const struct block *b =
        map_get(&a->torch, block_key(freed->device, freed->address));

    if (card)
        workspace_range_free(&card->range, freed);
    if (card && b)
        workspace_range_give_back(&card->range, b->under_bytes, b->over_bytes);
    free_from(&a->torch, freed->device, freed->address);
}

static void on_device_free(struct analysis *a, const struct trace_item *item)
{
    const struct trace_device_free *freed = trace_as_device_free(item);

    free_from(&a->raw, freed->device, freed->address);
}

/* Names the blocks that waited for this work on DEVICE. */
static void on_work(struct analysis *a, const struct trace_item *item,
                    uint64_t device)
{
    struct waiting *w = map_get(&a->waiting, thread_key(item, device));

    while (w && w->first) {
        struct block *b = w->first;
        struct label label = label_make(item, b->requested_bytes);
        block_wait_end(b);
        block_label(b, &label);
        attribute_label(a->attribute, b->address, &label);
    }
}

static void on_named_work(struct analysis *a, const struct trace_item *item)
{
    on_work(a, item, trace_work(item)->device);
}

static void on_convolution(struct analysis *a, const struct trace_item *item)
{
    const struct trace_convolution *c = trace_as_convolution(item);
    struct card *card = card_get(a, c->device);

    if (card)
        workspace_range_convolution(&card->range, c);
    on_named_work(a, item);
}

static void on_refuse(struct analysis *a, const struct trace_item *item)
{
    struct card *card = card_get(a, trace_as_device_refuse(item)->device);

    if (card)
        card->refused = true;
}

/* PyTorch has emptied its cache since, and got what it asked for. */
static void on_segment(struct analysis *a, const struct trace_item *item)
{
    struct card *card = card_get(a, trace_as_segment(item)->device);

    if (!card)
        return;
    card->retries += card->refused;
    card->refused = false;
}

static void on_oom(struct analysis *a, const struct trace_item *item)
{
    struct card *card = card_get(a, trace_as_oom(item)->device);

    if (card)
        card->refused = false;
}

/* Lending cuBLAS a block is no work, but says what that block is. */
static void on_library_call(struct analysis *a, const struct trace_item *item)
{
    const struct trace_library_call *call = trace_as_library_call(item);
    const char *name = trace_names_get(a->names, call->name);

    if (strcmp(name, "cublasSetWorkspace")) {
        on_named_work(a, item);
        return;
    }
    struct block *b = map_get(&a->torch, block_key(call->device, call->a));
    if (b) {
        struct label label = label_workspace(TRACE_GEMM);
        block_wait_end(b);
        block_label(b, &label);
        attribute_label(a->attribute, b->address, &label);
    }
}

static void on_copy(struct analysis *a, const struct trace_item *item)
{
    on_work(a, item, trace_as_copy(item)->device);
}

static void on_set(struct analysis *a, const struct trace_item *item)
{
    on_work(a, item, trace_as_set(item)->device);
}

static void (*const handlers[])(struct analysis *,
                                const struct trace_item *) = {
    [TRACE_DEVICE] = on_device,
    [TRACE_BLOCK_ALLOC] = on_block_alloc,
    [TRACE_BLOCK_FREE] = on_block_free,
    [TRACE_SIZE_RANGE] = on_size_range,
    [TRACE_DEVICE_MALLOC] = on_device_malloc,
    [TRACE_DEVICE_FREE] = on_device_free,
    [TRACE_DEVICE_REFUSE] = on_refuse,
    [TRACE_SEGMENT_ALLOC] = on_segment,
    [TRACE_SEGMENT_MAP] = on_segment,
    [TRACE_OOM] = on_oom,
    [TRACE_LAUNCH] = on_named_work,
    [TRACE_GEMM] = on_named_work,
    [TRACE_CONVOLUTION] = on_convolution,
    [TRACE_ATTENTION] = on_named_work,
    [TRACE_LIBRARY_CALL] = on_library_call,
    [TRACE_COLLECTIVE] = on_named_work,
    [TRACE_COPY] = on_copy,
    [TRACE_SET] = on_set,
};

static void analysis_take(void *context, const struct trace_item *item,
                          const struct trace_now *now)
{
    struct peak_reading *r = context;
    struct analysis *a = r->analysis;
    unsigned kind = item->head.kind;

    a->names = now->names;
    if (kind < sizeof handlers / sizeof *handlers && handlers[kind])
        handlers[kind](a, item);
    attribute_take(a->attribute, item, now);
}

static void blocks_fini(struct map *blocks)
{
    size_t cursor = 0;

    for (void *b; (b = map_next(blocks, &cursor));)
        free(b);
    map_fini(blocks);
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
    attribute_destroy(a->attribute);
    free(a);
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
        .range = card->range,
        .retries = card->retries,
    };
    workspace_range_end(&p->range);
    p->thing_count = tracker_things(t, names, &p->things);
}

/* DEVICE is in the process's numbering; where two of its devices are one GPU,
 * the last one tells. */
static void attribution_conclude(struct peak *peak, const struct analysis *a,
                                 unsigned device)
{
    struct attribution *found = attribute_conclude(a->attribute, device);

    if (!found)
        return;
    struct peak_card *card = &peak->cards[a->card_of[device]];
    attribution_destroy(card->attribution);
    card->attribution = found;
}

/* Works out what R's records come to, while their names are known. */
static void analysis_conclude(void *context, const struct trace_now *now)
{
    struct peak_reading *r = context;
    const struct analysis *a = r->analysis;

    for (size_t i = 0; i < SESSION_DEVICES; i++)
        card_conclude(&r->peak.cards[i], &a->cards[i], now->names);
    for (unsigned i = 0; i < SESSION_DEVICES; i++)
        attribution_conclude(&r->peak, a, i);
}

struct trace_listener peak_reading_init(struct peak_reading *r)
{
    struct analysis *a = xcalloc(1, sizeof *a);

    *r = (struct peak_reading){.analysis = a};
    for (unsigned i = 0; i < SESSION_DEVICES; i++)
        a->card_of[i] = i;
    a->attribute = attribute_create();
    return (struct trace_listener){
        .take = analysis_take, .end = analysis_conclude, .context = r};
}

void peak_reading_fini(struct peak_reading *r)
{
    analysis_fini(r->analysis);
    peak_fini(&r->peak);
}

int peak_read(struct peak *peak, struct trace_reader *reader, struct err *err)
{
    struct peak_reading r;
    const struct trace_listener listener = peak_reading_init(&r);
    int rc = trace_play(reader, &listener, 1, err);

    *peak = r.peak;
    r.peak = (struct peak){0};
    peak_reading_fini(&r);
    return rc;
}

void peak_fini(struct peak *peak)
{
    for (size_t i = 0; i < SESSION_DEVICES; i++) {
        free(peak->cards[i].things);
        attribution_destroy(peak->cards[i].attribution);
    }
}
