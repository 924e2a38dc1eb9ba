/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/replay_core.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/xmalloc.h"

/* A recording tells when a deferred free was done, not which streams it waited
 * for: each waits for a stream of its own, and so for no other free. */
#define FIRST_STREAM (UINT64_C(1) << 63)

#define MOST_BYTES (UINT64_C(1) << 60) /* "more than 1EB", allocate() */

struct replay_wait { /* a ticket */
    struct replay_wait *prev, *next;
    uint64_t address;
    bool done;
};

static void wait_delete(struct replay_core *c, struct replay_wait *w)
{
    if (map_get(&c->waiting, w->address) == w)
        map_take(&c->waiting, w->address);
    if (w->prev)
        w->prev->next = w->next;
    else
        c->waits = w->next;
    if (w->next)
        w->next->prev = w->prev;
    free(w);
}

static uint64_t event_record(void *context, const struct alloc_block *block,
                             uint64_t stream)
{
    struct replay_core *c = context;
    struct replay_wait *w = xcalloc(1, sizeof *w);

    (void)block;
    (void)stream;
    w->address = c->freeing;
    w->next = c->waits;
    if (w->next)
        w->next->prev = w;
    c->waits = w;
    map_put(&c->waiting, w->address, w);
    return (uintptr_t)w;
}

static bool event_query(void *context, uint64_t ticket)
{
    struct replay_wait *w = (struct replay_wait *)(uintptr_t)ticket;

    if (!w->done)
        return false;
    wait_delete(context, w);
    return true;
}

/* Waited for sooner than recorded: its REPLAY_FREE_DONE will find nothing. */
static void event_wait(void *context, uint64_t ticket)
{
    wait_delete(context, (struct replay_wait *)(uintptr_t)ticket);
}

static int replay_fail(const struct replay_core *c, uint64_t index,
                       const char *cause, uint64_t address, struct err *err)
{
    return err_set(err, "%s:event %" PRIu64 ": %s %#" PRIx64 " (device %u)",
                   c->name, index, cause, address, c->device);
}

int replay_op_check(const struct replay_op *op, const char *name,
                    struct err *err)
{
    const char *cause = NULL;

    if (op->device >= REPLAY_DEVICES)
        cause = "no such device";
    else if (op->kind == REPLAY_ALLOC && !op->address)
        cause = "a block without an address";
    else if ((op->kind == REPLAY_ALLOC || op->kind == REPLAY_OOM ||
              op->kind == REPLAY_SEGMENT) &&
             (!op->bytes || op->bytes >= MOST_BYTES))
        cause = "an impossible size";
    else if (op->kind == REPLAY_FRACTION &&
             !(op->fraction >= 0 && op->fraction <= 1))
        cause = "an impossible memory fraction";
    if (!cause)
        return 0;
    return err_set(err, "%s:event %" PRIu64 ": %s", name, op->index, cause);
}

int replay_op_apply(const struct replay_op *op, const char *name,
                    const struct alloc_rules *rules, struct alloc_conf *conf,
                    struct err *err)
{
    struct err cause = {""};

    if (!alloc_conf_parse(conf, op->settings, rules, &cause))
        return 0;
    return err_set(err,
                   "%s:event %" PRIu64 ": settings that the program made: %s",
                   name, op->index, cause.text);
}

static void free_later(struct replay_core *c, uint64_t address,
                       struct alloc_block *block)
{
    c->freeing = address;
    alloc_record_stream(c->engine, block, c->next_stream++);
    alloc_free(c->engine, block);
}

static int adopt_block(struct replay_core *c, const struct snapshot_block *b,
                       struct err *err)
{
    if (b->state == SNAPSHOT_INACTIVE)
        return 0;
    struct alloc_block *block =
        alloc_adopt_block(c->engine, b->address, b->bytes, b->requested_bytes);
    if (!block)
        return replay_fail(c, 0, "no place for the block at", b->address, err);
    map_put(&c->blocks, b->address, block);
    return 0;
}

static int adopt_snapshot(struct replay_core *c, const struct snapshot *initial,
                          struct err *err)
{
    for (size_t i = 0; initial && i < initial->segment_count; i++) {
        const struct snapshot_segment *g = &initial->segments[i];

        if (g->device != c->device)
            continue;
        struct alloc_block_info info = {
            .address = g->address,
            .bytes = g->bytes,
            .stream = g->stream,
            .pool = g->pool,
            .small = g->small,
            .expandable = g->expandable,
        };
        if (alloc_adopt_segment(c->engine, &info))
            return replay_fail(c, 0, "no place for the segment at", g->address,
                               err);
        for (size_t k = 0; k < g->block_count; k++)
            if (adopt_block(c, &g->blocks[k], err))
                return -1;
    }
    alloc_adopt_end(c->engine);
    return 0;
}

/* Blocks that were waiting for a stream when the recording began. */
static void adopt_frees(struct replay_core *c, const struct snapshot *initial)
{
    for (size_t i = 0; initial && i < initial->segment_count; i++) {
        const struct snapshot_segment *g = &initial->segments[i];

        for (size_t k = 0; g->device == c->device && k < g->block_count; k++)
            if (g->blocks[k].state == SNAPSHOT_AWAITING_FREE)
                free_later(c, g->blocks[k].address,
                           map_take(&c->blocks, g->blocks[k].address));
    }
}

int replay_core_init(struct replay_core *c, unsigned device,
                     const struct replay_source *source,
                     const struct replay_config *config,
                     const struct replay_base *base, struct err *err)
{
    struct alloc_config a = {
        .rules = config->rules,
        .conf = config->conf,
        .total_bytes = config->total_bytes,
        .driver = base->driver,
        .listener = base->listener,
        .listener_context = base->listener_context,
    };

    *c = (struct replay_core){
        .device = device, .name = source->name, .next_stream = FIRST_STREAM};
    a.driver.event_context = c;
    a.driver.event_record = event_record;
    a.driver.event_query = event_query;
    a.driver.event_wait = event_wait;
    c->engine = alloc_create(&a);
    if (adopt_snapshot(c, source->initial, err)) {
        replay_core_fini(c);
        return -1;
    }
    adopt_frees(c, source->initial);
    return 0;
}

void replay_core_fini(struct replay_core *c)
{
    alloc_destroy(c->engine);
    c->engine = NULL;
    while (c->waits)
        wait_delete(c, c->waits);
    map_fini(&c->waiting);
    map_fini(&c->blocks);
}

int replay_core_alloc(struct replay_core *c, const struct replay_op *op,
                      struct alloc_block **block, struct err *err)
{
    *block = alloc_malloc_from(c->engine, op->pool, op->bytes, op->stream);
    if (!*block || !map_put(&c->blocks, op->address, *block))
        return 0;
    return replay_fail(c, op->index, "a second block at", op->address, err);
}

int replay_core_free(struct replay_core *c, const struct replay_op *op,
                     struct err *err)
{
    struct alloc_block *block = map_take(&c->blocks, op->address);

    if (!block)
        return replay_fail(c, op->index, "free of the unknown address",
                           op->address, err);
    if (op->deferred)
        free_later(c, op->address, block);
    else
        alloc_free(c->engine, block);
    return 0;
}

void replay_core_free_done(struct replay_core *c, const struct replay_op *op)
{
    struct replay_wait *w = map_take(&c->waiting, op->address);

    if (w)
        w->done = true;
}
