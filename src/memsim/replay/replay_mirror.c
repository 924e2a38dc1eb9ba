/* SPDX-License-Identifier: Apache-2.0
 * A recording played to the engine, to prove that both do the same. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/replay/replay_core.h"
#include "memsim/replay/replay_expected.h"

struct mirror {
    struct replay_core core;
    struct expected expected;
    struct replay_plan *plan;
    bool refused; /* the device is known to have said no to this request */
    bool tells_refusals, collects_garbage;
};

static void plan_add(struct replay_plan *plan, const struct replay_deed *deed)
{
    xgrow(&plan->deeds, plan->count, &plan->capacity, sizeof *plan->deeds);
    plan->deeds[plan->count++] = *deed;
}

static bool is_release(const struct replay_op *op)
{
    return op->kind == REPLAY_SEGMENT && (op->action == ALLOC_SEGMENT_FREE ||
                                          op->action == ALLOC_SEGMENT_UNMAP);
}

static bool is_obtain(const struct replay_op *op)
{
    return op->kind == REPLAY_SEGMENT && !is_release(op);
}

/* A private pool that gives segments back had lost its last user. */
static void release_pools(struct mirror *m, uint64_t index)
{
    struct expected *e = &m->expected;

    for (size_t i = e->first; i < e->count; i++) {
        struct alloc_pool_id id = e->ops[i].pool;

        if (!is_release(&e->ops[i]) || (!id.first && !id.second) ||
            alloc_pool_release(m->core.engine, id))
            continue;
        plan_add(m->plan,
                 &(struct replay_deed){index, m->core.device, false, id});
    }
}

/* The private pool that alone gave segments back: a MemPool that is deleted
 * empties itself. Else {0, 0}. */
static struct alloc_pool_id emptied_pool(const struct expected *e)
{
    struct alloc_pool_id id = {0, 0};
    bool found = false;

    for (size_t i = e->first; i < e->count; i++) {
        const struct replay_op *op = &e->ops[i];

        if (!is_release(op))
            continue;
        if (found &&
            (op->pool.first != id.first || op->pool.second != id.second))
            return (struct alloc_pool_id){0, 0};
        id = op->pool;
        found = true;
    }
    return id;
}

static void flush_mirror(struct mirror *m, uint64_t index)
{
    struct alloc_pool_id id = emptied_pool(&m->expected);

    plan_add(m->plan, &(struct replay_deed){index, m->core.device, true, id});
    alloc_empty_cache(m->core.engine, id);
}

/* Were the releases before request OP a call of empty_cache()? They were not
 * where the device refused or a limit did, and must have been where the request
 * was served without the device. Otherwise both would have left the same state;
 * then a request that goes beyond the most that was ever held is taken for
 * refused. */
static bool is_flush(const struct mirror *m, const struct replay_op *op)
{
    const struct expected *e = &m->expected;
    uint64_t obtained = 0;

    if (m->refused || op->kind == REPLAY_OOM ||
        alloc_exceeds_limit(m->core.engine, op->bytes))
        return false;
    if (!expected_any(e, is_obtain) ||
        alloc_is_cached(m->core.engine, op->pool, op->bytes, op->stream))
        return true;
    if (m->collects_garbage)
        return false;
    if (m->tells_refusals)
        return true;
    for (size_t i = e->first; i < e->count; i++)
        if (is_obtain(&e->ops[i]))
            obtained += e->ops[i].bytes;
    return alloc_reserved_bytes(m->core.engine) + obtained <=
           m->plan->peak_reserved_bytes[m->core.device];
}

/* Nothing else comes between the releases of one request: where something
 * does, they were a call of empty_cache(). */
static void flush_if_released(struct mirror *m, const struct replay_op *op)
{
    if (!expected_any(&m->expected, is_release))
        return;
    release_pools(m, op->index);
    flush_mirror(m, op->index);
    if (expected_head(&m->expected))
        expected_differ(&m->expected,
                        "the segment at %#" PRIx64 " is left alone",
                        expected_head(&m->expected)->address);
    expected_reset(&m->expected);
    m->refused = false;
}

/* Marks the deferred frees done that were found done before a request. Those
 * before a release were waited for by the flush. */
static void frees_done(struct mirror *m, bool waited)
{
    struct expected *e = &m->expected;

    for (size_t i = e->first; i < e->count && !waited; i++)
        if (e->ops[i].kind == REPLAY_FREE_DONE)
            replay_core_free_done(&m->core, &e->ops[i]);
}

static int play_request(struct mirror *m, const struct replay_op *op,
                        struct err *err)
{
    bool releases = expected_any(&m->expected, is_release);
    bool explicit = releases && is_flush(m, op);
    struct alloc_block *block;

    if (releases)
        release_pools(m, op->index);
    frees_done(m, releases && !explicit);
    if (explicit)
        flush_mirror(m, op->index);
    if (op->kind == REPLAY_OOM)
        block =
            alloc_malloc_from(m->core.engine, op->pool, op->bytes, op->stream);
    else if (replay_core_alloc(&m->core, op, &block, err))
        return -1;
    if ((block != NULL) != (op->kind == REPLAY_ALLOC))
        expected_differ(&m->expected,
                        block ? "a block, recorded is out of memory"
                              : "out of memory, recorded is a block");
    else if (block && alloc_block_address(block) != op->address)
        expected_differ(&m->expected,
                        "the block at %#" PRIx64 ", recorded is %#" PRIx64,
                        alloc_block_address(block), op->address);
    else if (expected_head(&m->expected))
        expected_differ(&m->expected,
                        "the segment at %#" PRIx64 " is left alone",
                        expected_head(&m->expected)->address);
    else
        m->plan->blocks_checked += block != NULL;
    expected_reset(&m->expected);
    m->refused = false;
    return 0;
}

static int expect_op(struct mirror *m, const struct replay_op *op,
                     struct err *err)
{
    (void)err;
    if (op->kind == REPLAY_FREE_DONE)
        flush_if_released(m, op);
    expected_add(&m->expected, op);
    return 0;
}

static int play_free(struct mirror *m, const struct replay_op *op,
                     struct err *err)
{
    flush_if_released(m, op);
    return replay_core_free(&m->core, op, err);
}

static int note_refusal(struct mirror *m, const struct replay_op *op,
                        struct err *err)
{
    (void)op;
    (void)err;
    m->refused = true;
    return 0;
}

static int play_fraction(struct mirror *m, const struct replay_op *op,
                         struct err *err)
{
    (void)err;
    flush_if_released(m, op);
    alloc_set_memory_fraction(m->core.engine, op->fraction);
    return 0;
}

static int pass_op(struct mirror *m, const struct replay_op *op,
                   struct err *err)
{
    (void)m;
    (void)op;
    (void)err;
    return 0;
}

static int (*const play[REPLAY_KINDS])(struct mirror *,
                                       const struct replay_op *,
                                       struct err *) = {
    [REPLAY_ALLOC] = play_request,  [REPLAY_OOM] = play_request,
    [REPLAY_FREE] = play_free,      [REPLAY_FREE_DONE] = expect_op,
    [REPLAY_SEGMENT] = expect_op,   [REPLAY_REFUSED] = note_refusal,
    [REPLAY_OTHER_ALLOC] = pass_op, [REPLAY_OTHER_FREE] = pass_op,
    [REPLAY_RESET] = pass_op,       [REPLAY_FRACTION] = play_fraction,
};

struct mirrors {
    struct mirror devices[REPLAY_DEVICES];
    const struct replay_source *source;
    struct replay_config config; /* its conf is what it is by now */
    struct replay_plan *plan;
};

static int mirror_start(struct mirrors *all, unsigned device, struct err *err)
{
    struct mirror *m = &all->devices[device];

    m->plan = m->expected.plan = all->plan;
    m->tells_refusals = all->source->tells_refusals;
    m->collects_garbage = all->config.conf.gc_threshold > 0;
    struct replay_base base = {.driver = expected_driver(&m->expected)};

    return replay_core_init(&m->core, device, all->source, &all->config, &base,
                            err);
}

/* What is left at the end can only have been a last call of empty_cache(). */
static void mirror_finish(struct mirror *m, uint64_t steps)
{
    struct replay_op end = {.index = steps};

    m->expected.index = steps;
    if (m->plan->exact)
        flush_if_released(m, &end);
}

static int play_settings(struct mirrors *all, const struct replay_op *op,
                         struct err *err)
{
    if (replay_op_apply(op, all->source->name, all->config.rules,
                        &all->config.conf, err))
        return -1;
    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        struct mirror *m = &all->devices[i];

        if (!m->core.engine)
            continue;
        m->expected.index = op->index;
        flush_if_released(m, op);
        m->collects_garbage = all->config.conf.gc_threshold > 0;
        alloc_set_conf(m->core.engine, &all->config.conf);
    }
    return 0;
}

static int play_all(struct mirrors *all, struct err *err)
{
    const struct replay_source *source = all->source;
    struct replay_op op;
    int more = 0;

    /* After a difference everything is different. */
    while (all->plan->exact &&
           (more = source->next(source->context, &op, err)) > 0) {
        if (replay_op_check(&op, source->name, err))
            return -1;
        if (op.kind == REPLAY_SETTINGS) {
            if (play_settings(all, &op, err))
                return -1;
            continue;
        }
        struct mirror *m = &all->devices[op.device];
        if (!m->core.engine && mirror_start(all, op.device, err))
            return -1;
        m->expected.index = op.index;
        all->plan->steps = op.index + 1;
        if (play[op.kind](m, &op, err))
            return -1;
    }
    return more < 0 ? -1 : 0;
}

/* How much each device ever held, for is_flush. */
static int measure_mirrors(const struct mirrors *all, struct err *err)
{
    const struct replay_source *source = all->source;
    uint64_t held[REPLAY_DEVICES] = {0}, *peak = all->plan->peak_reserved_bytes;
    struct replay_op op;
    int more;

    for (size_t i = 0; source->initial && i < source->initial->segment_count;
         i++)
        held[source->initial->segments[i].device] +=
            source->initial->segments[i].bytes;
    memcpy(peak, held, sizeof held);
    while ((more = source->next(source->context, &op, err)) > 0) {
        if (replay_op_check(&op, source->name, err))
            return -1;
        if (is_obtain(&op))
            held[op.device] += op.bytes;
        else if (is_release(&op))
            held[op.device] -= op.bytes;
        if (held[op.device] > peak[op.device] &&
            held[op.device] < UINT64_MAX / 2)
            peak[op.device] = held[op.device];
    }
    return more < 0 ? -1 : source->rewind(source->context, err);
}

int replay_mirror(const struct replay_source *source,
                  const struct replay_config *config, struct replay_plan *plan,
                  struct err *err)
{
    struct mirrors *all = xcalloc(1, sizeof *all);
    int rc = -1;

    *plan = (struct replay_plan){.exact = true};
    all->source = source;
    all->config = *config;
    all->plan = plan;
    if (!source->rewind(source->context, err) && !measure_mirrors(all, err))
        rc = play_all(all, err);
    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        struct mirror *m = &all->devices[i];

        if (!rc && m->core.engine) {
            mirror_finish(m, plan->steps);
            plan->stats[i] = *alloc_stats(m->core.engine);
        }
        replay_core_fini(&m->core);
        expected_fini(&m->expected);
    }
    free(all);
    if (rc)
        replay_plan_fini(plan);
    return rc;
}

void replay_plan_fini(struct replay_plan *plan)
{
    free(plan->deeds);
    *plan = (struct replay_plan){0};
}
