/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/export/perfetto_trace.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/bisect.h"
#include "common/base/map.h"
#include "common/trace/session.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/base/json_add.h"
#include "memsim/report/export/perfetto_blocks.h"

#define THREADS_MAX 4096 /* whose calls are written */

/* Numbers of threads: of a rank, of one of its processes. Perfetto takes a
 * process or thread numbered 0 for the idle one. */
#define RANK_THREADS    65536
#define PROCESS_THREADS (THREADS_MAX + 1)

_Static_assert(PERFETTO_PROCESSES *PROCESS_THREADS <= RANK_THREADS,
               "a rank's threads have numbers of their own");

/* A call of a module. */
struct call {
    uint64_t begin, end; /* ordinals of the records */
    uint64_t begin_ns, end_ns;
    uint32_t module, thread;
};

/* A call that is open. */
struct open {
    uint32_t module;
    struct calls *in; /* NULL: it is not kept */
    uint64_t begin;   /* its ordinal */
};

/* The calls that are open, the innermost last. */
struct thread {
    struct open *open;
    size_t count, capacity;
};

/* Calls by their beginning. */
struct calls {
    struct call *all;
    size_t count, capacity;
};

struct oom {
    uint64_t ordinal, time_ns, bytes;
    uint32_t thread;
};

struct perfetto_log {
    unsigned peak_card;
    uint64_t peak_bytes, peak_ns; /* of that GPU, so far */
    uint64_t ordinal, time_ns, first_ns;
    uint64_t call_count;
    struct calls first; /* PERFETTO_CALLS at most */
    struct calls near;  /* of a second before now, and about the peak */
    uint64_t sweep_at;  /* the ordinal, when near is full */
    struct oom *ooms;
    size_t oom_count, oom_capacity;
    const struct trace_names *names; /* of the pass */
    struct map modules;              /* their paths, by number */
    struct thread threads[THREADS_MAX];
    struct perfetto_blocks blocks;
    struct perfetto_card cards[SESSION_DEVICES];
    unsigned card_of[SESSION_DEVICES]; /* by the process's own numbering */
};

#define NEAR_MAX (3 * PERFETTO_CALLS_PEAK)

/* --- GPUs ---------------------------------------------------------------- */

void perfetto_card_allocated(struct perfetto_card *card, uint64_t ordinal,
                             uint64_t time_ns, uint64_t allocated_bytes,
                             uint64_t reserved_bytes)
{
    const struct moment now = {.ordinal = ordinal,
                               .time_ns = time_ns,
                               .allocated_bytes = allocated_bytes,
                               .reserved_bytes = reserved_bytes};

    memory_curve_add(&card->torch, &now, TRACE_CATEGORY_OTHER,
                     (int64_t)(allocated_bytes - card->allocated_bytes));
    card->allocated_bytes = allocated_bytes;
}

void perfetto_card_used(struct perfetto_card *card, uint64_t ordinal,
                        uint64_t time_ns, uint64_t used_bytes)
{
    const struct moment now = {.ordinal = ordinal,
                               .time_ns = time_ns,
                               .allocated_bytes = used_bytes};

    memory_curve_add(&card->used, &now, TRACE_CATEGORY_OTHER,
                     (int64_t)(used_bytes - card->used_bytes));
    card->used_bytes = used_bytes;
}

static void curve_write(struct memory_curve *t, struct perfetto *to,
                        struct perfetto_track track, const char *name,
                        const char *first, const char *second)
{
    size_t count;
    struct attribution_point *points = memory_curve_conclude(t, &count);

    for (size_t i = 0; i < count; i++) {
        const struct attribution_point *at = &points[i];
        const struct perfetto_value values[] = {
            {first, at->sums.bytes[TRACE_CATEGORY_OTHER]},
            {second, at->reserved_bytes},
        };
        perfetto_counter(to, track, at->time_ns, name, values, second ? 2 : 1);
    }
    free(points);
}

void perfetto_card_write(struct perfetto_card *card, struct perfetto *to,
                         struct perfetto_track track, unsigned index)
{
    char name[32];

    snprintf(name, sizeof name, "GPU %u", index);
    curve_write(&card->torch, to, track, name, "allocated", "reserved");
    snprintf(name, sizeof name, "GPU %u in all", index);
    curve_write(&card->used, to, track, name, "used", NULL);
}

void perfetto_card_fini(struct perfetto_card *card)
{
    memory_curve_fini(&card->torch);
    memory_curve_fini(&card->used);
}

/* --- records ------------------------------------------------------------- */

static struct perfetto_card *card_get(struct perfetto_log *s, uint64_t device)
{
    return device < SESSION_DEVICES ? &s->cards[s->card_of[device]] : NULL;
}

static void torch_set(struct perfetto_log *s, uint64_t time_ns, uint64_t device,
                      uint64_t allocated_bytes, uint64_t reserved_bytes)
{
    struct perfetto_card *card = card_get(s, device);

    if (!card)
        return;
    perfetto_card_allocated(card, s->ordinal, time_ns, allocated_bytes,
                            reserved_bytes);
    if (s->peak_card < SESSION_DEVICES && card == &s->cards[s->peak_card] &&
        allocated_bytes > s->peak_bytes) {
        s->peak_bytes = allocated_bytes;
        s->peak_ns = time_ns;
    }
}

static void used_set(struct perfetto_log *s, uint64_t time_ns, uint64_t device,
                     uint64_t used_bytes)
{
    struct perfetto_card *card = card_get(s, device);

    if (card)
        perfetto_card_used(card, s->ordinal, time_ns, used_bytes);
}

static void on_device(struct perfetto_log *s, const struct trace_item *item)
{
    const struct trace_device *d = trace_as_device(item);

    if (d->device >= SESSION_DEVICES || d->card >= SESSION_DEVICES)
        return;
    s->card_of[d->device] = (unsigned)d->card;
    used_set(s, item->head.time_ns, d->device, d->context_bytes);
}

static void on_device_reset(struct perfetto_log *s,
                            const struct trace_item *item)
{
    const struct trace_device_reset *reset = trace_as_device_reset(item);

    used_set(s, item->head.time_ns, reset->device, reset->used_bytes);
}

static void on_block_alloc(struct perfetto_log *s,
                           const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);

    torch_set(s, item->head.time_ns, alloc->device, alloc->allocated_bytes,
              alloc->reserved_bytes);
}

static void on_block_free(struct perfetto_log *s, const struct trace_item *item)
{
    const struct trace_block_free *freed = trace_as_block_free(item);

    torch_set(s, item->head.time_ns, freed->device, freed->allocated_bytes,
              freed->reserved_bytes);
}

static void on_device_malloc(struct perfetto_log *s,
                             const struct trace_item *item)
{
    const struct trace_device_malloc *m = trace_as_device_malloc(item);

    used_set(s, item->head.time_ns, m->device, m->used_bytes);
}

static void on_device_free(struct perfetto_log *s,
                           const struct trace_item *item)
{
    const struct trace_device_free *freed = trace_as_device_free(item);

    used_set(s, item->head.time_ns, freed->device, freed->used_bytes);
}

static void on_library_memory(struct perfetto_log *s,
                              const struct trace_item *item)
{
    const struct trace_library_memory *taken = trace_as_library_memory(item);

    used_set(s, item->head.time_ns, taken->device, taken->used_bytes);
}

static void on_module(struct perfetto_log *s, const struct trace_item *item)
{
    const struct trace_module *module = trace_as_module(item);
    const char *name = trace_names_get(s->names, module->name);

    free(map_put(&s->modules, module->module + 1, xstrdup(name)));
}

static void on_oom(struct perfetto_log *s, const struct trace_item *item)
{
    xgrow(&s->ooms, s->oom_count, &s->oom_capacity, sizeof *s->ooms);
    s->ooms[s->oom_count++] =
        (struct oom){.ordinal = s->ordinal,
                     .time_ns = item->head.time_ns,
                     .bytes = trace_as_oom(item)->requested_bytes,
                     .thread = item->head.thread};
}

static struct thread *thread_get(struct perfetto_log *s,
                                 const struct trace_item *item)
{
    return item->head.thread < THREADS_MAX ? &s->threads[item->head.thread]
                                           : NULL;
}

static bool is_near(const struct perfetto_log *s, uint64_t time_ns)
{
    uint64_t distance =
        time_ns > s->peak_ns ? time_ns - s->peak_ns : s->peak_ns - time_ns;

    return s->peak_bytes && distance <= PERFETTO_PEAK_NS;
}

/* Drops what is neither about the peak nor of the last second: of these the
 * next peak may be. */
static void near_sweep(struct perfetto_log *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->near.count; i++) {
        const struct call *c = &s->near.all[i];
        if (is_near(s, c->begin_ns) ||
            c->begin_ns + PERFETTO_PEAK_NS >= s->time_ns)
            s->near.all[kept++] = *c;
    }
    s->near.count = kept;
}

/* Where a call that begins now is kept; NULL: nowhere. */
static struct calls *call_admit(struct perfetto_log *s)
{
    s->call_count++;
    if (s->first.count < PERFETTO_CALLS)
        return &s->first;
    if (s->peak_card == PERFETTO_NO_PEAK)
        return NULL;
    if (s->near.count == NEAR_MAX && s->ordinal >= s->sweep_at) {
        near_sweep(s);
        s->sweep_at = s->ordinal + NEAR_MAX / 8;
    }
    return s->near.count < NEAR_MAX ? &s->near : NULL;
}

static void on_module_enter(struct perfetto_log *s,
                            const struct trace_item *item)
{
    struct thread *t = thread_get(s, item);
    uint32_t module = (uint32_t)trace_as_module_enter(item)->module;

    if (!t)
        return;
    struct calls *in = call_admit(s);
    xgrow(&t->open, t->count, &t->capacity, sizeof *t->open);
    t->open[t->count++] = (struct open){module, in, s->ordinal};
    if (!in)
        return;
    xgrow(&in->all, in->count, &in->capacity, sizeof *in->all);
    in->all[in->count++] = (struct call){.begin = s->ordinal,
                                         .end = UINT64_MAX,
                                         .begin_ns = item->head.time_ns,
                                         .module = module,
                                         .thread = item->head.thread};
}

/* The call in C that began with the record BEGIN; NULL: it was dropped. */
static struct call *call_find(const struct calls *c, uint64_t begin)
{
    size_t at = BISECT(i, c->count, c->all[i].begin < begin);

    return at < c->count && c->all[at].begin == begin ? &c->all[at] : NULL;
}

static void call_close(struct perfetto_log *s, struct thread *t)
{
    const struct open *o = &t->open[--t->count];
    struct call *call = o->in ? call_find(o->in, o->begin) : NULL;

    if (!call)
        return;
    call->end = s->ordinal;
    call->end_ns = s->time_ns;
}

/* Calls that an exception kept from being left end with the one around them,
 * as in src/capture/core/torch/tag.c. */
static void on_module_leave(struct perfetto_log *s,
                            const struct trace_item *item)
{
    struct thread *t = thread_get(s, item);
    uint32_t module = (uint32_t)trace_as_module_leave(item)->module;
    size_t at = t ? t->count : 0;

    while (at && t->open[at - 1].module != module)
        at--;
    if (!at)
        return;
    while (t->count >= at)
        call_close(s, t);
}

static void (*const handlers[])(struct perfetto_log *,
                                const struct trace_item *) = {
    [TRACE_DEVICE] = on_device,
    [TRACE_DEVICE_RESET] = on_device_reset,
    [TRACE_BLOCK_ALLOC] = on_block_alloc,
    [TRACE_BLOCK_FREE] = on_block_free,
    [TRACE_OOM] = on_oom,
    [TRACE_DEVICE_MALLOC] = on_device_malloc,
    [TRACE_DEVICE_FREE] = on_device_free,
    [TRACE_LIBRARY_MEMORY] = on_library_memory,
    [TRACE_MODULE] = on_module,
    [TRACE_MODULE_ENTER] = on_module_enter,
    [TRACE_MODULE_LEAVE] = on_module_leave,
};

static void log_take(void *context, const struct trace_item *item,
                     const struct trace_now *now)
{
    struct perfetto_log *s = context;
    unsigned kind = item->head.kind;

    s->ordinal = now->ordinal + 1;
    s->first_ns = now->first_ns;
    s->names = now->names;
    s->time_ns = item->head.time_ns; /* never decreases */
    if (kind < sizeof handlers / sizeof *handlers && handlers[kind])
        handlers[kind](s, item);
    perfetto_blocks_take(&s->blocks, item, now->names);
}

struct perfetto_log *perfetto_log_create(unsigned peak_card)
{
    struct perfetto_log *s = xcalloc(1, sizeof *s);

    s->peak_card = peak_card;
    for (unsigned i = 0; i < SESSION_DEVICES; i++)
        s->card_of[i] = i;
    return s;
}

struct trace_listener perfetto_log_listener(struct perfetto_log *log)
{
    return (struct trace_listener){.take = log_take, .context = log};
}

uint64_t perfetto_log_start(const struct perfetto_log *log)
{
    return log->first_ns;
}

void perfetto_log_destroy(struct perfetto_log *s)
{
    size_t cursor = 0;

    if (!s)
        return;
    for (void *name; (name = map_next(&s->modules, &cursor));)
        free(name);
    map_fini(&s->modules);
    for (size_t i = 0; i < THREADS_MAX; i++)
        free(s->threads[i].open);
    for (size_t i = 0; i < SESSION_DEVICES; i++)
        perfetto_card_fini(&s->cards[i]);
    perfetto_blocks_fini(&s->blocks);
    free(s->first.all);
    free(s->near.all);
    free(s->ooms);
    free(s);
}

/* --- writing -------------------------------------------------------------- */

/* What is to be written, in the order of the records. */
struct event {
    uint64_t ordinal;
    const struct call *call; /* NULL: an out-of-memory error */
    const struct oom *oom;
    bool ends;
};

struct events {
    struct event *all;
    size_t count, capacity;
};

static void event_add(struct events *e, struct event event)
{
    xgrow(&e->all, e->count, &e->capacity, sizeof *e->all);
    e->all[e->count++] = event;
}

static void call_add(struct events *e, const struct call *call)
{
    event_add(e, (struct event){.ordinal = call->begin, .call = call});
    event_add(e,
              (struct event){.ordinal = call->end, .call = call, .ends = true});
}

/* By record. Several calls can end with one: the innermost first, which began
 * last. */
static int event_compare(const void *x, const void *y)
{
    const struct event *a = x, *b = y;

    if (a->ordinal != b->ordinal)
        return a->ordinal < b->ordinal ? -1 : 1;
    return a->call->begin > b->call->begin ? -1 : 1;
}

static struct events events_collect(const struct perfetto_log *s,
                                    uint64_t *calls)
{
    struct events e = {0};

    for (*calls = 0; *calls < s->first.count; ++*calls)
        call_add(&e, &s->first.all[*calls]);
    for (size_t i = 0, near = 0;
         i < s->near.count && near < PERFETTO_CALLS_PEAK; i++)
        if (is_near(s, s->near.all[i].begin_ns)) {
            call_add(&e, &s->near.all[i]);
            near++;
            ++*calls;
        }
    for (size_t i = 0; i < s->oom_count; i++)
        event_add(&e, (struct event){.ordinal = s->ooms[i].ordinal,
                                     .oom = &s->ooms[i]});
    if (e.count)
        qsort(e.all, e.count, sizeof *e.all, event_compare);
    return e;
}

static struct perfetto_track track_of(const struct perfetto_process *p,
                                      uint32_t thread)
{
    return (struct perfetto_track){p->track.process,
                                   p->track.thread + 1 + thread};
}

static void oom_write(const struct perfetto_process *p, const struct oom *oom)
{
    char size[16], text[64];

    units_format_bytes(oom->bytes, size, sizeof size);
    snprintf(text, sizeof text, "out of memory: %s asked for", size);
    perfetto_instant(p->to, track_of(p, oom->thread), oom->time_ns, text);
}

static void call_begin(const struct perfetto_log *s,
                       const struct perfetto_process *p,
                       const struct call *call, bool *named)
{
    const char *name = map_get(&s->modules, (uint64_t)call->module + 1);
    char thread[48];

    if (!named[call->thread]) {
        named[call->thread] = true;
        snprintf(thread, sizeof thread, "modules, thread %u", call->thread);
        perfetto_name_thread(p->to, track_of(p, call->thread), thread);
    }
    perfetto_slice_begin(p->to, track_of(p, call->thread), call->begin_ns,
                         name ? name : "?", NULL, 0);
}

/* What is open when the process ends, ends with it. */
static void calls_end(struct perfetto_log *s)
{
    s->ordinal++;
    for (uint32_t i = 0; i < THREADS_MAX; i++)
        while (s->threads[i].count)
            call_close(s, &s->threads[i]);
}

void perfetto_log_write(struct perfetto_log *s, struct perfetto_process *p)
{
    bool named[THREADS_MAX] = {false};

    calls_end(s);
    struct events e = events_collect(s, &p->calls_told);
    p->calls = s->call_count;
    for (size_t i = 0; i < e.count; i++) {
        const struct call *call = e.all[i].call;
        if (!call)
            oom_write(p, e.all[i].oom);
        else if (!e.all[i].ends)
            call_begin(s, p, call, named);
        else
            perfetto_slice_end(p->to, track_of(p, call->thread), call->end_ns);
    }
    free(e.all);
    perfetto_blocks_write(&s->blocks, p->to, p->track, s->time_ns);
    for (unsigned i = 0; p->counters && i < SESSION_DEVICES; i++)
        perfetto_card_write(&s->cards[i], p->to, p->track, i);
}

struct perfetto_log *perfetto_trace_read(const char *path, unsigned peak_card,
                                         struct err *err)
{
    struct perfetto_log *log = perfetto_log_create(peak_card);
    const struct trace_listener listener = perfetto_log_listener(log);

    trace_play_file(path, &listener, err);
    return log;
}

struct perfetto_track perfetto_track_of(unsigned rank, unsigned nth)
{
    return (struct perfetto_track){rank + 1, (rank + 1) * RANK_THREADS +
                                                 nth * PROCESS_THREADS};
}

cJSON *perfetto_metadata(const struct result *result)
{
    cJSON *metadata = cJSON_CreateObject();
    size_t words = 0;

    while (result->command[words])
        words++;
    cJSON_AddStringToObject(metadata, "written_by", "memsim");
    cJSON_AddStringToObject(metadata, "clock",
                            result->timeline_count
                                ? "predicted: see memsim's doc/time.md"
                                : "the host's, while it ran the command "
                                  "without a GPU: no time here is a GPU's");
    cJSON_AddStringToObject(metadata, "verdict",
                            result_verdict_name(result->verdict));
    cJSON_AddStringToObject(metadata, "gpu", result->gpu.device_name);
    json_add_strings(metadata, "command", result->command, words);
    return metadata;
}

cJSON *perfetto_process_told(cJSON *told, unsigned rank,
                             const struct perfetto_process *process,
                             const struct err *err)
{
    cJSON *object = json_add_object(told);

    json_add_uint(object, "rank", rank);
    json_add_uint(object, "module_calls", process->calls);
    json_add_uint(object, "module_calls_told", process->calls_told);
    if (err->text[0])
        cJSON_AddStringToObject(object, "cut_short", err->text);
    return object;
}
