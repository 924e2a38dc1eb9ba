/* SPDX-License-Identifier: Apache-2.0
 * A recording on a GPU of other size, or under other settings. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/replay/replay_core.h"
#include "memsim/replay/replay_model.h"

struct run_device {
    struct replay_core core;
    struct replay_model model;
    struct map absent; /* by recorded address: workspaces that were refused */
    const struct run *run;
};

struct run {
    struct run_device devices[REPLAY_DEVICES];
    const struct replay_source *source;
    struct replay_config config; /* its conf is what it is by now */
    const struct replay_plan *plan;
    size_t next_deed;
    const struct replay_op *step; /* in hand */
    struct map plain; /* the convolutions that do without a workspace */
    struct replay_result *result;
    bool follows;   /* the addresses are the recorded ones */
    bool over;      /* a request failed that had not */
    bool uncertain; /* one failed, and nothing shows yet that it was survived */
};

static uint64_t stat_current(const struct alloc_stat *s)
{
    return (uint64_t)s->current;
}

static void watch_peaks(struct run *r, unsigned device, uint64_t index)
{
    struct replay_device *d = &r->result->devices[device];
    uint64_t used = r->devices[device].model.peak_used_bytes;

    if (used > d->peak_used_bytes) {
        d->peak_used_bytes = used;
        d->peak_index = index;
    }
    if (!r->devices[device].core.engine)
        return;
    const struct alloc_stats *s =
        alloc_stats(r->devices[device].core.engine);
    uint64_t allocated = stat_current(&s->allocated_bytes[ALLOC_ALL]);
    if (allocated > d->peak_allocated_bytes) {
        d->peak_allocated_bytes = allocated;
        d->allocated_index = index;
    }
}

static void add_oom(struct run *r, const struct replay_op *op, bool recorded)
{
    struct run_device *rd = &r->devices[op->device];
    struct replay_device *d = &r->result->devices[op->device];
    const struct alloc_stats *s = alloc_stats(rd->core.engine);
    uint64_t used = replay_model_used(&rd->model);

    xgrow(&d->ooms, d->oom_count, &d->oom_capacity, sizeof *d->ooms);
    d->ooms[d->oom_count++] = (struct replay_oom){
        .index = op->index,
        .time_ns = op->time_ns,
        .requested_bytes = op->bytes,
        .stream = op->stream,
        .refused_bytes = rd->model.refused_bytes,
        .free_bytes = used < rd->model.capacity_bytes
                          ? rd->model.capacity_bytes - used
                          : 0,
        .allocated_bytes = stat_current(&s->allocated_bytes[ALLOC_ALL]),
        .reserved_bytes = stat_current(&s->reserved_bytes[ALLOC_ALL]),
        .pool = op->pool,
        .other = op->kind == REPLAY_OTHER_ALLOC,
        .recorded = recorded,
    };
    r->uncertain = true;
    if (!recorded)
        r->over = true;
}

/* All requests that failed before this step were survived. */
static void mark_caught(struct run *r)
{
    if (!r->uncertain)
        return;
    r->uncertain = false;
    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        struct replay_device *d = &r->result->devices[i];

        if (d->oom_count)
            d->ooms[d->oom_count - 1].caught = true;
    }
}

/* Goes on as try_plans and run_single_conv do (Conv_v8.cpp), with a plan that
 * needs no workspace and is kept for its likes. */
static void do_without(struct run *r, const struct replay_op *op)
{
    struct replay_device *d = &r->result->devices[op->device];

    add_oom(r, op, false);
    d->ooms[d->oom_count - 1].caught = true;
    r->over = r->uncertain = false;
    map_put(&r->plain, op->plan, r);
    map_put(&r->devices[op->device].absent, op->address, r);
    r->result->plans_changed++;
    if (op->bytes > r->result->plan_bytes_most)
        r->result->plan_bytes_most = op->bytes;
}

static bool goes_without(const struct run *r, const struct replay_op *op)
{
    return (op->plan && map_get(&r->plain, op->plan)) ||
           (op->most_bytes && !op->least_bytes &&
            r->config.workspaces == REPLAY_LEAST_WORKSPACES);
}

static uint64_t bytes_of(const struct run *r, const struct replay_op *op)
{
    if (!op->most_bytes || r->config.workspaces == REPLAY_WORKSPACES)
        return op->bytes;
    return r->config.workspaces == REPLAY_MOST_WORKSPACES ? op->most_bytes
                                                          : op->least_bytes;
}

static int play_alloc(struct run *r, const struct replay_op *step,
                      struct err *err)
{
    struct run_device *d = &r->devices[step->device];
    struct replay_op changed = *step;
    const struct replay_op *op = &changed;
    struct alloc_block *block;

    mark_caught(r);
    r->result->ends_at_oom = false;
    r->result->sizes_unknown += op->most_bytes != 0;
    if (goes_without(r, op)) {
        map_put(&d->absent, op->address, r);
        return 0;
    }
    changed.bytes = bytes_of(r, op);
    if (replay_core_alloc(&d->core, op, &block, err))
        return -1;
    replay_model_asked(&d->model);
    if (!block && op->plan)
        do_without(r, op);
    else if (!block)
        add_oom(r, op, false);
    watch_peaks(r, op->device, op->index);
    return 0;
}

/* The program went another way after this, in the recording. */
static int play_oom(struct run *r, const struct replay_op *op, struct err *err)
{
    struct alloc *engine = r->devices[op->device].core.engine;
    struct alloc_block *block =
        alloc_malloc_from(engine, op->pool, op->bytes, op->stream);

    (void)err;
    replay_model_asked(&r->devices[op->device].model);
    mark_caught(r);
    watch_peaks(r, op->device, op->index);
    if (block) {
        alloc_free(engine, block);
        r->result->changed_course = r->result->ends_at_oom = true;
    } else {
        add_oom(r, op, true);
    }
    return 0;
}

static int play_free(struct run *r, const struct replay_op *op, struct err *err)
{
    struct run_device *d = &r->devices[op->device];

    if (d->absent.count && map_take(&d->absent, op->address))
        return 0;
    return replay_core_free(&d->core, op, err);
}

static int play_free_done(struct run *r, const struct replay_op *op,
                          struct err *err)
{
    (void)err;
    replay_core_free_done(&r->devices[op->device].core, op);
    return 0;
}

static int play_other_alloc(struct run *r, const struct replay_op *op,
                            struct err *err)
{
    struct replay_model *model = &r->devices[op->device].model;

    (void)err;
    if (!replay_model_other_alloc(model, op->address, op->bytes))
        add_oom(r, op, false);
    else if (op->library)
        vaspace_library(&model->space, op->library, op->bytes);
    watch_peaks(r, op->device, op->index);
    return 0;
}

static int play_other_free(struct run *r, const struct replay_op *op,
                           struct err *err)
{
    (void)err;
    replay_model_other_free(&r->devices[op->device].model, op->address);
    return 0;
}

static int play_reset(struct run *r, const struct replay_op *op,
                      struct err *err)
{
    (void)err;
    replay_model_reset(&r->devices[op->device].model);
    return 0;
}

static int play_fraction(struct run *r, const struct replay_op *op,
                         struct err *err)
{
    (void)err;
    alloc_set_memory_fraction(r->devices[op->device].core.engine, op->fraction);
    return 0;
}

static int play_segment(struct run *r, const struct replay_op *op,
                        struct err *err)
{
    (void)err;
    if (op->action == ALLOC_SEGMENT_ALLOC)
        replay_model_give(&r->devices[op->device].model, op->address,
                          op->bytes);
    return 0;
}

static int pass_op(struct run *r, const struct replay_op *op, struct err *err)
{
    (void)r;
    (void)op;
    (void)err;
    return 0;
}

static int (*const play[REPLAY_KINDS])(struct run *, const struct replay_op *,
                                       struct err *) = {
    [REPLAY_ALLOC] = play_alloc,
    [REPLAY_OOM] = play_oom,
    [REPLAY_FREE] = play_free,
    [REPLAY_FREE_DONE] = play_free_done,
    [REPLAY_SEGMENT] = play_segment,
    [REPLAY_REFUSED] = pass_op,
    [REPLAY_OTHER_ALLOC] = play_other_alloc,
    [REPLAY_OTHER_FREE] = play_other_free,
    [REPLAY_RESET] = play_reset,
    [REPLAY_FRACTION] = play_fraction,
};

static void do_deeds(struct run *r, uint64_t index)
{
    while (r->next_deed < r->plan->count &&
           r->plan->deeds[r->next_deed].index <= index) {
        const struct replay_deed *d = &r->plan->deeds[r->next_deed++];
        struct alloc *engine = r->devices[d->device].core.engine;

        if (!engine)
            continue;
        if (d->is_flush)
            alloc_empty_cache(engine, d->pool);
        else
            alloc_pool_release(engine, d->pool);
    }
}

static void pass_on(void *context, const struct alloc_event *event)
{
    const struct run_device *d = context;

    d->run->config.listener(d->run->config.listener_context, d->core.device,
                            d->run->step, event);
}

static int device_start(struct run *r, unsigned device, struct err *err)
{
    struct run_device *d = &r->devices[device];
    const struct snapshot *initial = r->source->initial;
    struct replay_op before = {.kind = REPLAY_ALLOC, .device = device};

    if (replay_model_init(&d->model, &r->config, initial, device,
                          r->source->name, err))
        return -1;
    d->model.follows = r->follows;
    d->run = r;
    struct replay_base base = {replay_model_driver(&d->model),
                               r->config.listener ? pass_on : NULL, d};
    if (replay_core_init(&d->core, device, r->source, &r->config, &base, err)) {
        replay_model_fini(&d->model);
        return -1;
    }
    r->result->devices[device].used = true;
    r->result->devices[device].capacity_bytes = d->model.capacity_bytes;
    watch_peaks(r, device, 0);
    before.bytes = d->model.mapped_bytes;
    if (replay_model_used(&d->model) > d->model.capacity_bytes)
        add_oom(r, &before, false);
    return 0;
}

static void tell_watcher(const struct run *r, const struct replay_op *op)
{
    const struct run_device *d = &r->devices[op->device];
    const struct alloc_stats *stats = alloc_stats(d->core.engine);
    const struct replay_moment now = {
        .device = op->device,
        .index = op->index,
        .time_ns = op->time_ns,
        .allocated_bytes = stat_current(&stats->allocated_bytes[ALLOC_ALL]),
        .reserved_bytes = stat_current(&stats->reserved_bytes[ALLOC_ALL]),
        .used_bytes = replay_model_used(&d->model),
    };

    r->config.watcher(r->config.listener_context, &now);
}

/* Of all devices, those to come included. */
static int play_settings(struct run *r, const struct replay_op *op,
                         struct err *err)
{
    if (replay_op_apply(op, r->source->name, r->config.rules, &r->config.conf,
                        err))
        return -1;
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        if (r->devices[i].core.engine)
            alloc_set_conf(r->devices[i].core.engine, &r->config.conf);
    return 0;
}

static int step_op(struct run *r, const struct replay_op *op, struct err *err)
{
    if (replay_op_check(op, r->source->name, err))
        return -1;
    r->step = op;
    do_deeds(r, op->index);
    if (op->kind == REPLAY_SETTINGS)
        return play_settings(r, op, err);
    if (!r->devices[op->device].core.engine && device_start(r, op->device, err))
        return -1;
    r->result->steps = op->index + 1;
    if (r->over)
        return 0;
    int rc = play[op->kind](r, op, err);
    if (!rc && r->config.watcher)
        tell_watcher(r, op);
    return rc;
}

static int run_all(struct run *r, uint64_t stop, struct err *err)
{
    const struct replay_source *source = r->source;
    struct replay_op op;
    int more = 0;

    if (source->rewind(source->context, err))
        return -1;
    while (!r->over && (more = source->next(source->context, &op, err)) > 0) {
        if (op.index > stop)
            return 0;
        if (step_op(r, &op, err))
            return -1;
    }
    if (!r->over)
        do_deeds(r, UINT64_MAX);
    return more < 0 ? -1 : 0;
}

static void conclude_run(struct run *r)
{
    struct replay_result *result = r->result;

    result->fits = !r->over;
    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        struct replay_device *d = &result->devices[i];
        const struct alloc *engine = r->devices[i].core.engine;

        result->engines[i] = engine;
        if (!engine)
            continue;
        d->stats = *alloc_stats(engine);
        d->peak_allocated_bytes =
            (uint64_t)d->stats.allocated_bytes[ALLOC_ALL].peak;
        d->peak_reserved_bytes =
            (uint64_t)d->stats.reserved_bytes[ALLOC_ALL].peak;
        for (size_t k = 0; k < d->oom_count; k++)
            if (!d->ooms[k].caught)
                result->fits = false;
    }
}

static void run_fini(struct run *r)
{
    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        if (!r->devices[i].core.engine)
            continue;
        replay_core_fini(&r->devices[i].core);
        replay_model_fini(&r->devices[i].model);
        map_fini(&r->devices[i].absent);
        r->result->engines[i] = NULL;
    }
    map_fini(&r->plain);
}

/* Whether a replay with CONFIG asks the device for the recorded segments, one
 * by one, to the end: then it can have their addresses. 0 or 1; -1 with ERR. */
static int run_follows(const struct replay_source *source,
                       const struct replay_config *config,
                       const struct replay_plan *plan, struct err *err)
{
    struct replay_result result = {0};

    if (!source->real_addresses || !plan->exact)
        return 0;
    struct run *r = xcalloc(1, sizeof *r);
    r->source = source;
    r->config = *config;
    r->config.listener = NULL;
    r->config.watcher = NULL;
    r->plan = plan;
    r->result = &result;
    r->follows = true;
    int rc = run_all(r, UINT64_MAX, err);
    bool follows = !r->over;
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        follows &= !r->devices[i].model.departed;
    run_fini(r);
    free(r);
    replay_result_fini(&result);
    return rc ? -1 : follows;
}

int replay_run(const struct replay_source *source,
               const struct replay_config *config,
               const struct replay_plan *plan, const struct replay_look *look,
               struct replay_result *result, struct err *err)
{
    int follows = run_follows(source, config, plan, err);

    if (follows < 0)
        return -1;
    struct run *r = xcalloc(1, sizeof *r);
    *result = (struct replay_result){0};
    r->source = source;
    r->config = *config;
    r->plan = plan;
    r->result = result;
    r->follows = follows;
    int rc = run_all(r, look ? look->stop : UINT64_MAX, err);
    if (!rc)
        conclude_run(r);
    if (!rc && look)
        look->visit(look->context, result);
    run_fini(r);
    free(r);
    if (rc)
        replay_result_fini(result);
    return rc;
}

void replay_result_fini(struct replay_result *result)
{
    for (unsigned i = 0; i < REPLAY_DEVICES; i++)
        free(result->devices[i].ooms);
    *result = (struct replay_result){0};
}
