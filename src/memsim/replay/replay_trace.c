/* SPDX-License-Identifier: Apache-2.0
 * A trace tells of every cudaMalloc, PyTorch's too, and only then, on the same
 * thread, that it was PyTorch's (record_trace comes after cudaMalloc in
 * alloc_block, and after cuMemCreate in map_block). So what the device gave is
 * held back until the thread's next record says whose it is. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/trace/trace_read.h"
#include "common/base/text_clean.h"
#include "common/base/xmalloc.h"
#include "memsim/replay/replay.h"
#include "memsim/replay/replay_hints.h"

struct held {
    struct replay_op op;
    uint32_t thread;
    enum trace_how how;
};

struct replay_trace {
    struct trace_reader reader; /* where the steps are not in memory */
    struct replay_source source;
    struct replay_trace_info *info; /* during the first pass */
    bool in_memory; /* READY has all steps; else the trace is read again */
    size_t limit;   /* of steps in memory */
    uint64_t index; /* of the record in hand */
    struct held *held;
    size_t held_count, held_capacity;
    struct replay_op *ready; /* to be handed out */
    size_t ready_at, ready_count, ready_capacity;
    struct map others; /* by address: what is not PyTorch's */
    struct replay_hints hints;
    char **settings; /* all that the program gave, each once */
    size_t setting_count, setting_capacity;
    const struct gpu *gpu;    /* the GPU to play on; NULL: as recorded */
    uint64_t workspace_bytes; /* of cuBLAS, on that GPU */
};

static void ready_add(struct replay_trace *t, const struct replay_op *op)
{
    xgrow(&t->ready, t->ready_count, &t->ready_capacity, sizeof *t->ready);
    t->ready[t->ready_count++] = *op;
}

static struct replay_op op_start(const struct replay_trace *t,
                                 const struct trace_item *item,
                                 enum replay_kind kind, uint64_t device)
{
    return (struct replay_op){
        .kind = kind,
        .device = (unsigned)device,
        .index = t->index,
        .time_ns = item->head.time_ns,
    };
}

/* Whose workspace OP's block is, if a convolution's, and what its size may
 * be. */
static void take_plan(const struct replay_trace *t, struct replay_op *op)
{
    op->plan = (uintptr_t)map_get(&t->hints.plans, op->index + 1);
    op->least_bytes = (uintptr_t)map_get(&t->hints.least, op->index + 1);
    op->most_bytes = (uintptr_t)map_get(&t->hints.most, op->index + 1);
}

static void see_block_alloc(struct replay_trace *t,
                            const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);
    struct replay_op op = op_start(t, item, REPLAY_ALLOC, alloc->device);

    op.address = alloc->address;
    op.bytes = alloc->requested_bytes;
    take_plan(t, &op);
    if (t->gpu && map_get(&t->hints.lent, t->index + 1))
        op.bytes = t->workspace_bytes;
    op.stream = alloc->stream;
    op.pool.first = alloc->pool_low;
    op.pool.second = alloc->pool_high;
    ready_add(t, &op);
}

static void see_block_free(struct replay_trace *t,
                           const struct trace_item *item)
{
    const struct trace_block_free *freed = trace_as_block_free(item);
    struct replay_op op = op_start(t, item, REPLAY_FREE, freed->device);

    op.address = freed->address;
    op.deferred = freed->deferred != 0;
    ready_add(t, &op);
}

static void see_free_done(struct replay_trace *t, const struct trace_item *item)
{
    const struct trace_free_done *done = trace_as_free_done(item);
    struct replay_op op = op_start(t, item, REPLAY_FREE_DONE, done->device);

    op.address = done->address;
    ready_add(t, &op);
}

static void see_oom(struct replay_trace *t, const struct trace_item *item)
{
    const struct trace_oom *oom = trace_as_oom(item);
    struct replay_op op = op_start(t, item, REPLAY_OOM, oom->device);

    op.bytes = oom->requested_bytes;
    op.stream = oom->stream;
    ready_add(t, &op);
}

static void see_refusal(struct replay_trace *t, const struct trace_item *item)
{
    const struct trace_device_refuse *refused = trace_as_device_refuse(item);
    struct replay_op op = op_start(t, item, REPLAY_REFUSED, refused->device);

    op.bytes = refused->bytes;
    ready_add(t, &op);
}

static bool text_is(const struct trace_item *item, const char *text)
{
    return item->head.text_bytes == strlen(text) &&
           !memcmp(item->text, text, item->head.text_bytes);
}

/* Who takes memory that a GPU's file has, and how much. */
struct taker {
    const char *who;
    uint64_t bytes;
};

/* Fills *TAKER where ITEM's is one of them. */
static bool taker_find(const struct gpu *gpu, const struct trace_item *item,
                       struct taker *taker)
{
    const struct taker takers[] = {
        {"cublas", gpu->cublas_bytes},
        {"cudnn", gpu->cudnn_bytes},
        {"cufft", gpu->cufft_bytes},
        {"cufft plan", gpu->cufft_plan_bytes},
        {"cusparse", gpu->cusparse_bytes},
        {"cusolver", gpu->cusolver_first_bytes},
        {"cusolver handle", gpu->cusolver_bytes},
        {"streams", gpu->streams_bytes},
        {"managed memory", gpu->managed_bytes},
        {"nccl", gpu->nccl_first_bytes},
        {"kernels", gpu->context_torch_bytes - gpu->context_bytes},
        {"all kernels", gpu->modules_eager_bytes},
        {"second context", gpu->context_bytes},
    };

    for (size_t i = 0; i < sizeof takers / sizeof *takers; i++) {
        if (!text_is(item, takers[i].who))
            continue;
        *taker = takers[i];
        return true;
    }
    return false;
}

static void see_library(struct replay_trace *t, const struct trace_item *item)
{
    static const struct gpu none;
    const struct trace_library_memory *taken = trace_as_library_memory(item);
    struct replay_op op = op_start(t, item, REPLAY_OTHER_ALLOC, taken->device);
    struct taker taker;

    op.bytes = taken->bytes;
    if (taker_find(t->gpu ? t->gpu : &none, item, &taker)) {
        op.library = taker.who;
        op.bytes = t->gpu ? taker.bytes : op.bytes;
    }
    if (op.bytes)
        ready_add(t, &op);
}

static void copy_text(char *out, size_t size, const struct trace_item *item,
                      size_t from)
{
    size_t length = item->head.text_bytes - from;

    if (length >= size)
        length = size - 1;
    memcpy(out, item->text + from, length);
    out[length] = '\0';
    text_make_printable(out);
}

/* A text that is no number is an impossible fraction. */
static void see_fraction(struct replay_trace *t, const struct trace_item *item)
{
    struct replay_op op = op_start(t, item, REPLAY_FRACTION,
                                   trace_as_memory_fraction(item)->device);
    char text[32], *end;

    copy_text(text, sizeof text, item, 0);
    op.fraction = strtod(text, &end);
    if (end == text || *end)
        op.fraction = -1;
    ready_add(t, &op);
}

static const char *setting_keep(struct replay_trace *t,
                                const struct trace_item *item)
{
    for (size_t i = 0; i < t->setting_count; i++)
        if (text_is(item, t->settings[i]))
            return t->settings[i];
    xgrow(&t->settings, t->setting_count, &t->setting_capacity,
          sizeof *t->settings);
    return t->settings[t->setting_count++] =
               xasprintf("%.*s", (int)item->head.text_bytes, item->text);
}

static void see_settings(struct replay_trace *t, const struct trace_item *item)
{
    struct replay_op op = {.kind = REPLAY_SETTINGS,
                           .index = t->index,
                           .time_ns = item->head.time_ns};

    op.settings = setting_keep(t, item);
    ready_add(t, &op);
}

static void see_device(struct replay_trace *t, const struct trace_item *item)
{
    const struct trace_device *device = trace_as_device(item);
    struct replay_op op = op_start(t, item, REPLAY_OTHER_ALLOC, device->device);

    op.bytes = t->gpu ? t->gpu->context_bytes : device->context_bytes;
    if (op.bytes)
        ready_add(t, &op);
}

static void see_device_malloc(struct replay_trace *t,
                              const struct trace_item *item)
{
    const struct trace_device_malloc *m = trace_as_device_malloc(item);
    struct held h = {.op = op_start(t, item, REPLAY_OTHER_ALLOC, m->device),
                     .thread = item->head.thread,
                     .how = (enum trace_how)m->how};

    h.op.address = m->address;
    h.op.bytes = m->bytes;
    xgrow(&t->held, t->held_count, &t->held_capacity, sizeof *t->held);
    t->held[t->held_count++] = h;
}

static void see_device_free(struct replay_trace *t,
                            const struct trace_item *item)
{
    const struct trace_device_free *freed = trace_as_device_free(item);
    struct replay_op op = op_start(t, item, REPLAY_OTHER_FREE, freed->device);

    op.address = freed->address;
    if (map_take(&t->others, op.address))
        ready_add(t, &op);
}

static void see_reset(struct replay_trace *t, const struct trace_item *item)
{
    struct replay_op op =
        op_start(t, item, REPLAY_RESET, trace_as_device_reset(item)->device);

    ready_add(t, &op);
}

static void see_segment(struct replay_trace *t, const struct trace_item *item,
                        enum alloc_action action)
{
    const struct trace_segment_alloc *segment = trace_as_segment(item);
    struct replay_op op = op_start(t, item, REPLAY_SEGMENT, segment->device);

    op.action = action;
    op.address = segment->address;
    op.bytes = segment->bytes;
    op.stream = segment->stream;
    op.pool.first = segment->pool_low;
    op.pool.second = segment->pool_high;
    ready_add(t, &op);
}

static void see_segment_alloc(struct replay_trace *t,
                              const struct trace_item *item)
{
    see_segment(t, item, ALLOC_SEGMENT_ALLOC);
}

static void see_segment_free(struct replay_trace *t,
                             const struct trace_item *item)
{
    see_segment(t, item, ALLOC_SEGMENT_FREE);
}

static void see_segment_map(struct replay_trace *t,
                            const struct trace_item *item)
{
    see_segment(t, item, ALLOC_SEGMENT_MAP);
}

static void see_segment_unmap(struct replay_trace *t,
                              const struct trace_item *item)
{
    see_segment(t, item, ALLOC_SEGMENT_UNMAP);
}

static void (*const handlers[])(struct replay_trace *t,
                                const struct trace_item *item) = {
    [TRACE_BLOCK_ALLOC] = see_block_alloc,
    [TRACE_BLOCK_FREE] = see_block_free,
    [TRACE_FREE_DONE] = see_free_done,
    [TRACE_SEGMENT_ALLOC] = see_segment_alloc,
    [TRACE_SEGMENT_FREE] = see_segment_free,
    [TRACE_SEGMENT_MAP] = see_segment_map,
    [TRACE_SEGMENT_UNMAP] = see_segment_unmap,
    [TRACE_OOM] = see_oom,
    [TRACE_MEMORY_FRACTION] = see_fraction,
    [TRACE_ALLOCATOR_SETTINGS] = see_settings,
    [TRACE_DEVICE_MALLOC] = see_device_malloc,
    [TRACE_DEVICE_FREE] = see_device_free,
    [TRACE_DEVICE_REFUSE] = see_refusal,
    [TRACE_LIBRARY_MEMORY] = see_library,
    [TRACE_DEVICE] = see_device,
    [TRACE_DEVICE_RESET] = see_reset,
};

/* Does ITEM say that H's memory is PyTorch's? */
static bool is_claimed(const struct held *h, const struct trace_item *item)
{
    if (item->head.kind == TRACE_SEGMENT_ALLOC)
        return trace_as_segment_alloc(item)->address == h->op.address;
    return item->head.kind == TRACE_SEGMENT_MAP && h->how == TRACE_HOW_VMM;
}

/* Settles what ITEM's thread was given before it. A mapped segment is made of
 * several pieces. */
static void held_settle(struct replay_trace *t, const struct trace_item *item)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->held_count; i++) {
        struct held *h = &t->held[i];
        bool another_piece = item->head.kind == TRACE_DEVICE_MALLOC &&
                             h->how == TRACE_HOW_VMM &&
                             trace_as_device_malloc(item)->how == TRACE_HOW_VMM;

        if (h->thread != item->head.thread || another_piece) {
            t->held[kept++] = *h;
        } else if (!is_claimed(h, item)) {
            map_put(&t->others, h->op.address, t);
            ready_add(t, &h->op);
        }
    }
    t->held_count = kept;
}

static void see_item(struct replay_trace *t, const struct trace_item *item)
{
    if (t->held_count)
        held_settle(t, item);
    if (item->head.kind < sizeof handlers / sizeof *handlers &&
        handlers[item->head.kind])
        handlers[item->head.kind](t, item);
    t->index++;
}

static int next_op(void *context, struct replay_op *op, struct err *err)
{
    struct replay_trace *t = context;
    struct trace_item item;

    if (!t->in_memory && t->reader.fd < 0 && t->source.rewind(t, err))
        return -1;
    while (!t->in_memory && t->ready_at == t->ready_count) {
        t->ready_at = t->ready_count = 0;
        int more = trace_reader_next(&t->reader, &item, err);
        if (more <= 0)
            return more;
        see_item(t, &item);
    }
    if (t->ready_at == t->ready_count)
        return 0;
    *op = t->ready[t->ready_at++];
    return 1;
}

static int begin_again(void *context, struct err *err)
{
    struct replay_trace *t = context;
    const char *path = t->reader.name;

    if (t->in_memory) {
        t->ready_at = 0;
        return 0;
    }
    t->held_count = t->ready_at = t->ready_count = 0;
    t->index = 0;
    map_fini(&t->others);
    trace_reader_close(&t->reader);
    int rc = trace_reader_open(&t->reader, path, err);
    if (rc) /* closed for good */
        t->reader = (struct trace_reader){.fd = -1, .name = path};
    return rc;
}

/* PYTORCH_CUDA_ALLOC_CONF goes before PYTORCH_ALLOC_CONF
 * (CUDAAllocatorConfig.h, instance). */
static void read_setting(struct replay_trace_info *info,
                         const struct trace_item *item)
{
    const struct {
        const char *key;
        char *out;
        size_t size;
        bool first_wins;
    } wanted[] = {
        {"torch=", info->torch_version, sizeof info->torch_version, false},
        {"framework=", info->framework, sizeof info->framework, false},
        {"places=", info->places, sizeof info->places, false},
        {"PYTORCH_CUDA_ALLOC_CONF=", info->alloc_conf, sizeof info->alloc_conf,
         false},
        {"PYTORCH_ALLOC_CONF=", info->alloc_conf, sizeof info->alloc_conf,
         true},
    };

    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        size_t length = strlen(wanted[i].key);

        if (item->head.text_bytes < length ||
            memcmp(item->text, wanted[i].key, length) ||
            (wanted[i].first_wins && wanted[i].out[0]))
            continue;
        copy_text(wanted[i].out, wanted[i].size, item, length);
    }
}

static void read_device(struct replay_trace_info *info,
                        const struct trace_item *item)
{
    const struct trace_device *device = trace_as_device(item);

    if (device->device >= REPLAY_DEVICES)
        return;
    info->devices[device->device].used = true;
    info->devices[device->device].capacity_bytes = device->capacity_bytes;
    info->devices[device->device].card = (unsigned)device->card;
    copy_text(info->gpu, sizeof info->gpu, item, 0);
}

static void read_end(struct replay_trace_info *info,
                     const struct trace_item *item)
{
    const struct trace_end *end = trace_as_end(item);

    info->status = (unsigned)end->status;
    if (end->reason == TRACE_END_FULL || end->reason == TRACE_END_LIMIT)
        info->ending = REPLAY_LIMITED;
    else
        info->ending = info->status ? REPLAY_FAILED : REPLAY_WHOLE;
}

/* From now on the steps are read again for each replay. */
static void memory_leave(struct replay_trace *t)
{
    t->in_memory = false;
    t->ready_at = t->ready_count = t->ready_capacity = 0;
    free(t->ready);
    t->ready = NULL;
}

static void info_take(struct replay_trace_info *info,
                      const struct trace_item *item)
{
    if (item->head.kind == TRACE_PROCESS) {
        info->rank = (unsigned)trace_as_process(item)->rank;
        copy_text(info->program, sizeof info->program, item, 0);
    } else if (item->head.kind == TRACE_SETTING) {
        read_setting(info, item);
    } else if (item->head.kind == TRACE_DEVICE) {
        read_device(info, item);
    } else if (item->head.kind == TRACE_END) {
        read_end(info, item);
    }
}

static void first_take(void *context, const struct trace_item *item,
                       const struct trace_now *now)
{
    struct replay_trace *t = context;

    replay_hints_take(&t->hints, item, now->names);
    info_take(t->info, item);
    if (!t->in_memory)
        return;
    see_item(t, item);
    if (t->ready_count > t->limit)
        memory_leave(t);
}

/* What is known of a block only after it. */
static void first_end(void *context, const struct trace_now *now)
{
    struct replay_trace *t = context;

    (void)now;
    replay_hints_finish(&t->hints);
    t->info = NULL;
    for (size_t i = 0; i < t->ready_count; i++)
        if (t->ready[i].kind == REPLAY_ALLOC)
            take_plan(t, &t->ready[i]);
}

struct replay_trace *replay_trace_create(const char *path, size_t limit,
                                         struct replay_trace_info *info)
{
    struct replay_trace *t = xcalloc(1, sizeof *t);

    t->source = (struct replay_source){
        .context = t,
        .name = path,
        .next = next_op,
        .rewind = begin_again,
        .tells_refusals = true,
    };
    t->reader = (struct trace_reader){.fd = -1, .name = path};
    t->in_memory = true;
    t->limit = limit;
    t->info = info;
    *info = (struct replay_trace_info){.ending = REPLAY_KILLED};
    return t;
}

struct trace_listener replay_trace_listener(struct replay_trace *t)
{
    return (struct trace_listener){
        .take = first_take, .end = first_end, .context = t};
}

const struct replay_op *replay_trace_steps(const struct replay_trace *t,
                                           size_t *count)
{
    *count = t->ready_count;
    return t->in_memory ? t->ready : NULL;
}

struct replay_trace *replay_trace_open(const char *path,
                                       struct replay_trace_info *info,
                                       struct err *err)
{
    struct replay_trace *t = replay_trace_create(path, REPLAY_STEPS, info);
    const struct trace_listener listener = replay_trace_listener(t);
    int rc = trace_play_file(path, &listener, err);

    if (!rc)
        return t;
    replay_trace_close(t);
    return NULL;
}

const struct replay_source *replay_trace_source(const struct replay_trace *t)
{
    return &t->source;
}

size_t replay_trace_set_card(struct replay_trace *t, const struct gpu *gpu,
                             uint64_t workspace_bytes)
{
    memory_leave(t); /* which has the recorded GPU's */
    t->gpu = gpu;
    t->workspace_bytes = workspace_bytes;
    return t->hints.lent.count;
}

void replay_trace_close(struct replay_trace *t)
{
    trace_reader_close(&t->reader);
    map_fini(&t->others);
    replay_hints_fini(&t->hints);
    while (t->setting_count)
        free(t->settings[--t->setting_count]);
    free(t->settings);
    free(t->held);
    free(t->ready);
    free(t);
}
