/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file_open.h"
#include "common/base/file_write.h"
#include "common/base/xmalloc.h"
#include "memsim/replay/workspace.h"

/* Flash attention, and bfloat16 in the tensor cores, begin with Ampere
 * (check_flash_attention_hardware_support, sdp_utils.cpp). */
enum { FLASH_MAJOR = 8 };

/* Which of the two kinds of recording is it? */
static int is_pickle(const char *path, bool *pickle, struct err *err)
{
    unsigned char start[2];
    int fd = file_open(path, err);

    if (fd < 0)
        return -1;
    ssize_t n = read(fd, start, sizeof start);
    int error = errno;
    close(fd);
    if (n < 0)
        return err_set(err, "%s: %s", path, strerror(error));
    *pickle = snapshot_is_pickle(start, (size_t)n);
    return 0;
}

static bool has_history(const struct snapshot *s)
{
    for (size_t i = 0; i < s->trace_count; i++)
        if (s->traces[i].count)
            return true;
    return false;
}

static int open_snapshot(struct recording *r, struct err *err)
{
    if (snapshot_load(r->path, &r->snapshot, err))
        return -1;
    if (!has_history(&r->snapshot))
        return err_set(err,
                       "%s: has no history, only what was allocated at its "
                       "end; call torch.cuda.memory._record_memory_history() "
                       "at the start of the job",
                       r->path);
    r->torch_assumed = !r->snapshot.torch_version;
    snprintf(r->info.torch_version, sizeof r->info.torch_version, "%s",
             r->torch_assumed ? r->snapshot.since_version
                              : r->snapshot.torch_version);
    if (r->snapshot.settings)
        snprintf(r->info.alloc_conf, sizeof r->info.alloc_conf, "%s",
                 r->snapshot.settings);
    return 0;
}

static int choose_rules(struct recording *r, const char *torch, struct err *err)
{
    if (torch) {
        snprintf(r->info.torch_version, sizeof r->info.torch_version, "%s",
                 torch);
        r->torch_assumed = false;
    }
    if (!r->info.torch_version[0] || !strcmp(r->info.torch_version, "unknown"))
        return err_set(err,
                       "%s: does not say which torch it is of; give "
                       "--torch",
                       r->path);
    r->whatif.config.rules =
        alloc_rules_find(r->info.torch_version, &r->torch_known, err);
    return r->whatif.config.rules ? 0 : -1;
}

uint64_t recording_capacity(const struct recording *r)
{
    uint64_t bytes = 0;

    for (int i = 0; i < REPLAY_DEVICES; i++)
        if (r->info.devices[i].capacity_bytes > bytes)
            bytes = r->info.devices[i].capacity_bytes;
    return bytes;
}

/* Of a run's addresses: a snapshot says neither its GPU nor what libraries took
 * at which moment. */
static enum vaspace_model model_of(const struct recording *r,
                                   const struct recording_options *o)
{
    struct gpu recorded;
    struct err err = {""};

    if (!r->trace)
        return o->addresses;
    if (o->gpu)
        return vaspace_model_of(o->addresses, o->gpu->capability_major);
    return gpu_load(r->info.gpu, &recorded, &err)
               ? o->addresses
               : vaspace_model_of(o->addresses, recorded.capability_major);
}

/* A snapshot says nothing of the GPU, so its context is the GPU's. */
static void choose_memory(struct recording *r,
                          const struct recording_options *o)
{
    struct replay_config *c = &r->whatif.config;

    c->addresses = model_of(r, o);
    c->total_bytes = recording_capacity(r);
    if (o->gpu)
        c->total_bytes = o->gpu->memory_bytes;
    if (o->memory_bytes)
        c->total_bytes = o->memory_bytes;
    if (!r->trace)
        c->other_bytes = o->gpu ? o->gpu->context_torch_bytes : 0;
}

/* From here on R's steps are those of a run on GPU. */
static void move_to(struct recording *r, const struct gpu *gpu)
{
    uint64_t bytes = workspace_cublas_bytes(r->whatif.config.rules, gpu);

    struct gpu recorded;
    struct err err = {""};

    if (replay_trace_set_card(r->trace, gpu, bytes))
        r->workspace_bytes = bytes;
    r->kernels_differ = !gpu_load(r->info.gpu, &recorded, &err) &&
                        (recorded.capability_major < FLASH_MAJOR) !=
                            (gpu->capability_major < FLASH_MAJOR);
}

/* The settings that the recording was made under. */
static int recorded_conf(struct recording *r, struct err *err)
{
    struct replay_config *c = &r->whatif.config;

    alloc_conf_init(&c->conf);
    return alloc_conf_parse(&c->conf, r->info.alloc_conf, c->rules, err);
}

/* Plays R as it was, on its own GPU as far as that is known. */
static int mirror_recording(struct recording *r, struct err *err)
{
    struct replay_config config = r->whatif.config;

    if (recording_capacity(r))
        config.total_bytes = recording_capacity(r);
    return replay_mirror(r->whatif.source, &config, &r->plan, err);
}

static int open_source(struct recording *r, const struct recording_options *o,
                       struct err *err)
{
    if (choose_rules(r, o->torch, err) || recorded_conf(r, err))
        return -1;
    choose_memory(r, o);
    if (r->trace) {
        r->whatif.source = replay_trace_source(r->trace);
    } else {
        if (replay_snapshot_open(&r->snapshot_source, &r->snapshot,
                                 &r->whatif.config.conf, r->path, err))
            return -1;
        if (o->modelled)
            r->snapshot_source.source.real_addresses = false;
        r->whatif.source = &r->snapshot_source.source;
    }
    r->whatif.plan = &r->plan;
    r->whatif.ending = r->info.ending;
    if (mirror_recording(r, err))
        return -1;
    if (r->trace && o->gpu)
        move_to(r, o->gpu);
    return 0;
}

int recording_open(struct recording *r, const char *path,
                   const struct recording_options *options, struct err *err)
{
    bool pickle = false;
    int rc = is_pickle(path, &pickle, err);

    *r = (struct recording){.path = xstrdup(path)};
    if (!rc && pickle)
        rc = open_snapshot(r, err);
    else if (!rc && !(r->trace = replay_trace_open(r->path, &r->info, err)))
        rc = -1;
    if (!rc && recording_is_used(r))
        rc = open_source(r, options, err);
    if (rc)
        recording_close(r);
    return rc;
}

int recording_open_trace(struct recording *r, const char *path,
                         struct replay_trace *trace,
                         const struct replay_trace_info *info,
                         const struct recording_options *options,
                         struct err *err)
{
    int rc = 0;

    *r = (struct recording){.path = xstrdup(path),
                            .trace = trace,
                            .borrows_trace = true,
                            .info = *info};
    if (recording_is_used(r))
        rc = open_source(r, options, err);
    if (rc)
        recording_close(r);
    return rc;
}

void recording_close(struct recording *r)
{
    whatif_fini(&r->whatif);
    replay_plan_fini(&r->plan);
    if (r->trace && !r->borrows_trace)
        replay_trace_close(r->trace);
    replay_snapshot_close(&r->snapshot_source);
    snapshot_fini(&r->snapshot);
    free(r->path);
    *r = (struct recording){0};
}

bool recording_is_used(const struct recording *r)
{
    for (int i = 0; r->trace && i < REPLAY_DEVICES; i++)
        if (r->info.devices[i].used)
            return true;
    return !r->trace;
}

/* A snapshot in the making, with the stacks of its allocations. */
struct taking {
    struct snapshot *to;           /* its frames are lent */
    struct recording_frames *own;  /* which were read for it; NULL: none */
    const struct map *stacks;      /* by 1 + the step's index */
    struct map events;             /* the same of a snapshot */
    struct map live;               /* of the blocks in use, by address */
    const struct recording_listener *listener; /* it gets the events; NULL:
                                                  they are kept */
};

static uint32_t stack_of(const struct map *stacks, uint64_t key)
{
    return (uint32_t)(uintptr_t)map_get(stacks, key);
}

static void end_block(void *context, const struct alloc_block_info *b)
{
    struct taking *t = context;
    struct snapshot *s = t->to;
    struct snapshot_segment *g = NULL;

    if (b->address == b->segment) {
        g = snapshot_add_segment(s);
        g->address = b->segment;
        g->bytes = b->segment_bytes;
        g->stream = b->stream;
        g->pool = b->pool;
        g->small = b->small;
        g->expandable = b->expandable;
    }
    g = &s->segments[s->segment_count - 1];
    g->blocks = xreallocarray(g->blocks, g->block_count + 1, sizeof *g->blocks);
    g->blocks[g->block_count++] = (struct snapshot_block){
        .address = b->address,
        .bytes = b->bytes,
        .requested_bytes = b->active ? b->requested_bytes : 0,
        .state = b->allocated ? SNAPSHOT_ALLOCATED
                 : b->active  ? SNAPSHOT_AWAITING_FREE
                              : SNAPSHOT_INACTIVE,
        .stack = b->active ? stack_of(&t->live, b->address) : 0,
    };
}

static void take_end(void *context, const struct replay_result *result)
{
    struct taking *t = context;
    struct snapshot *s = t->to;

    for (unsigned i = 0; i < REPLAY_DEVICES; i++) {
        size_t first = s->segment_count;

        if (result->engines[i])
            alloc_walk(result->engines[i], end_block, t);
        for (; first < s->segment_count; first++)
            s->segments[first].device = i;
    }
}

/* A free has its own stack, if that was recorded, or that of its block, as in
 * PyTorch's own snapshots; another event that of the request that caused it. */
static uint32_t event_stack(struct taking *t, const struct replay_op *step,
                            const struct alloc_event *event)
{
    uint32_t stack = stack_of(t->stacks, step->index + 1);
    uint32_t of_block = stack_of(&t->live, event->address);

    switch (event->action) {
    case ALLOC_ALLOC:
        if (stack)
            map_put(&t->live, event->address, (void *)(uintptr_t)stack);
        return stack;
    case ALLOC_FREE_REQUESTED:
        return stack ? stack : of_block;
    case ALLOC_FREE_COMPLETED:
        map_take(&t->live, event->address);
        return stack && step->kind != REPLAY_ALLOC ? stack : of_block;
    default:
        return step->kind == REPLAY_ALLOC || step->kind == REPLAY_OOM ? stack
                                                                      : 0;
    }
}

static void take_event(void *context, unsigned device,
                       const struct replay_op *step,
                       const struct alloc_event *event)
{
    struct snapshot_event e = {
        .action = event->action,
        .address = event->address,
        .bytes = event->bytes,
        .stream = event->stream,
        .time_us = step->time_ns / 1000,
        .pool = event->pool,
    };
    struct taking *t = context;

    if (e.action > ALLOC_OOM)
        return;
    e.stack = event_stack(t, step, event);
    if (t->listener)
        t->listener->event(t->listener->context, device, &e, &t->to->frames);
    else
        snapshot_add_event(t->to, device, &e);
}

static void take_moment(void *context, const struct replay_moment *now)
{
    struct taking *t = context;

    t->listener->moment(t->listener->context, now);
}

/* Those of R's trace. */
static int trace_stacks(const struct recording *r, struct taking *t,
                        struct err *err)
{
    const struct recording_frames *frames = r->frames;
    int rc = 0;

    if (!frames) {
        struct trace_reader reader;
        frames = t->own = recording_frames_create();
        const struct trace_listener listener =
            recording_frames_listener(t->own);
        rc = trace_reader_open(&reader, r->path, err);
        if (!rc) {
            rc = trace_play(&reader, &listener, 1, err);
            trace_reader_close(&reader);
        }
    }
    t->to->frames = frames->frames;
    t->stacks = &frames->stacks;
    return rc;
}

/* Those of R's snapshot, of what was there before its events as well. */
static void snapshot_stacks(const struct recording *r, struct taking *t)
{
    const struct snapshot *initial = &r->snapshot_source.initial;
    struct snapshot_order order = {.snapshot = &r->snapshot};
    const struct snapshot_event *e;
    uint64_t index = 0;
    unsigned device;
    size_t place;

    t->to->frames = r->snapshot.frames;
    t->stacks = &t->events;
    for (; (e = snapshot_order_next(&order, &device, &place)); index++)
        if (e->stack)
            map_put(&t->events, index + 1, (void *)(uintptr_t)e->stack);
    snapshot_order_fini(&order);
    for (size_t i = 0; i < initial->segment_count; i++)
        for (size_t k = 0; k < initial->segments[i].block_count; k++) {
            const struct snapshot_block *b = &initial->segments[i].blocks[k];
            if (b->stack)
                map_put(&t->live, b->address, (void *)(uintptr_t)b->stack);
        }
}

/* Plays R under CONF and makes the snapshot T->TO of it, with the segments of
 * step INDEX, or those at the end. */
static int recording_snapshot(const struct recording *r, const char *conf,
                              uint64_t index, struct taking *t, struct err *err)
{
    struct replay_config config = r->whatif.config;
    struct replay_look look = {index, take_end, t};
    struct replay_result result;

    *t->to =
        (struct snapshot){.settings = xstrdup(conf),
                          .torch_version = xstrdup(r->info.torch_version)};
    alloc_conf_init(&config.conf);
    config.listener = take_event;
    config.watcher = t->listener ? take_moment : NULL;
    config.listener_context = t;
    if (!r->trace)
        snapshot_stacks(r, t);
    else if (trace_stacks(r, t, err))
        return -1;
    if (alloc_conf_parse(&config.conf, conf, config.rules, err) ||
        replay_run(r->whatif.source, &config, &r->plan, &look, &result, err))
        return -1;
    replay_result_fini(&result);
    return 0;
}

static void taking_fini(struct taking *t)
{
    t->to->frames = (struct snapshot_frames){0};
    snapshot_fini(t->to);
    recording_frames_destroy(t->own);
    map_fini(&t->events);
    map_fini(&t->live);
}

static void write_pickle(const void *what, FILE *out)
{
    snapshot_write(what, out);
}

int recording_write_snapshot(const struct recording *r, const char *conf,
                             const char *path, struct err *err)
{
    struct snapshot snapshot;
    struct taking t = {.to = &snapshot};

    if (!recording_is_used(r))
        return err_set(err,
                       "%s: no GPU was used as far as this trace goes: there "
                       "is no snapshot to write",
                       r->path);
    int rc = recording_snapshot(r, conf, UINT64_MAX, &t, err);
    if (!rc)
        rc = file_write(write_pickle, &snapshot, path, err);
    taking_fini(&t);
    return rc;
}

int recording_follow(const struct recording *r,
                     const struct recording_listener *listener,
                     struct err *err)
{
    struct snapshot snapshot;
    struct taking t = {.to = &snapshot, .listener = listener};
    int rc =
        recording_snapshot(r, r->whatif.rows[0].conf, UINT64_MAX, &t, err);

    taking_fini(&t);
    return rc;
}

int recording_blocks(const struct recording *r, recording_visit *visit,
                     void *context, struct err *err)
{
    const struct whatif *w = &r->whatif;
    const struct whatif_row *first = &w->rows[0];
    struct snapshot snapshot;
    struct taking t = {.to = &snapshot};
    uint64_t index = w->at_oom
                         ? w->oom_index
                         : first->result.devices[w->device].allocated_index;
    int rc = recording_snapshot(r, first->conf, index, &t, err);

    if (!rc)
        visit(context, &snapshot);
    taking_fini(&t);
    return rc;
}
