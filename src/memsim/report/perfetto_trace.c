/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/perfetto_trace.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/trace/session.h"
#include "common/base/units.h"
#include "common/base/xmalloc.h"
#include "common/base/json_add.h"

#define THREADS_MAX 4096 /* whose calls are told */

/* Numbers of threads: of a rank, of one of its processes. Perfetto takes a
 * process or thread numbered 0 for the idle one. */
#define RANK_THREADS    65536
#define PROCESS_THREADS (THREADS_MAX + 1)

_Static_assert(PERFETTO_PROCESSES *PROCESS_THREADS <= RANK_THREADS,
               "a rank's threads have numbers of their own");

struct call {
    uint32_t module;
    bool told;
};

/* The calls that are open, the innermost last. */
struct thread {
    bool named;
    struct call *open;
    size_t count, capacity;
};

struct stream {
    struct perfetto_process *process;
    struct trace_names names;
    struct map modules; /* their paths, by number */
    struct thread threads[THREADS_MAX];
    struct perfetto_card cards[SESSION_DEVICES];
    unsigned card_of[SESSION_DEVICES]; /* by the process's own numbering */
    uint64_t ordinal, time_ns;
    uint64_t near_told; /* calls about the peak */
};

/* --- cards ---------------------------------------------------------------- */

void perfetto_card_allocated(struct perfetto_card *card, uint64_t ordinal,
                             uint64_t time_ns, uint64_t allocated_bytes,
                             uint64_t reserved_bytes)
{
    const struct moment now = {ordinal, time_ns, allocated_bytes,
                               reserved_bytes};

    timeline_add(&card->torch, &now, TRACE_CATEGORY_OTHER,
                 (int64_t)(allocated_bytes - card->allocated_bytes));
    card->allocated_bytes = allocated_bytes;
}

void perfetto_card_used(struct perfetto_card *card, uint64_t ordinal,
                        uint64_t time_ns, uint64_t used_bytes)
{
    const struct moment now = {ordinal, time_ns, used_bytes, 0};

    timeline_add(&card->used, &now, TRACE_CATEGORY_OTHER,
                 (int64_t)(used_bytes - card->used_bytes));
    card->used_bytes = used_bytes;
}

static void timeline_write(struct timeline *t, struct perfetto *to,
                           struct perfetto_track track, const char *name,
                           const char *first, const char *second)
{
    struct attribution points = {0};

    timeline_conclude(t, &points);
    for (size_t i = 0; i < points.point_count; i++) {
        const struct attribution_point *at = &points.points[i];
        const struct perfetto_value values[] = {
            {first, at->sums.bytes[TRACE_CATEGORY_OTHER]},
            {second, at->reserved_bytes},
        };
        perfetto_counter(to, track, at->time_ns, name, values, second ? 2 : 1);
    }
    free(points.points);
}

void perfetto_card_write(struct perfetto_card *card, struct perfetto *to,
                         struct perfetto_track track, unsigned index)
{
    char name[32];

    snprintf(name, sizeof name, "GPU %u", index);
    timeline_write(&card->torch, to, track, name, "allocated", "reserved");
    snprintf(name, sizeof name, "GPU %u in all", index);
    timeline_write(&card->used, to, track, name, "used", NULL);
}

void perfetto_card_fini(struct perfetto_card *card)
{
    timeline_fini(&card->torch);
    timeline_fini(&card->used);
}

/* --- calls ---------------------------------------------------------------- */

static struct perfetto_track track_of(const struct stream *s, uint32_t thread)
{
    const struct perfetto_track *track = &s->process->track;

    return (struct perfetto_track){track->process, track->thread + 1 + thread};
}

static struct perfetto_card *card_get(struct stream *s, uint64_t device)
{
    return device < SESSION_DEVICES ? &s->cards[s->card_of[device]] : NULL;
}

static void torch_set(struct stream *s, uint64_t time_ns, uint64_t device,
                      uint64_t allocated_bytes, uint64_t reserved_bytes)
{
    struct perfetto_card *card = card_get(s, device);

    if (card)
        perfetto_card_allocated(card, s->ordinal, time_ns, allocated_bytes,
                                reserved_bytes);
}

static void used_set(struct stream *s, uint64_t time_ns, uint64_t device,
                     uint64_t used_bytes)
{
    struct perfetto_card *card = card_get(s, device);

    if (card)
        perfetto_card_used(card, s->ordinal, time_ns, used_bytes);
}

static void on_device(struct stream *s, const struct trace_item *item)
{
    const struct trace_device *d = trace_as_device(item);

    if (d->device >= SESSION_DEVICES || d->card >= SESSION_DEVICES)
        return;
    s->card_of[d->device] = (unsigned)d->card;
    used_set(s, item->head.time_ns, d->device, d->context_bytes);
}

static void on_device_reset(struct stream *s, const struct trace_item *item)
{
    const struct trace_device_reset *reset = trace_as_device_reset(item);

    used_set(s, item->head.time_ns, reset->device, reset->used_bytes);
}

static void on_block_alloc(struct stream *s, const struct trace_item *item)
{
    const struct trace_block_alloc *alloc = trace_as_block_alloc(item);

    torch_set(s, item->head.time_ns, alloc->device, alloc->allocated_bytes,
              alloc->reserved_bytes);
}

static void on_block_free(struct stream *s, const struct trace_item *item)
{
    const struct trace_block_free *freed = trace_as_block_free(item);

    torch_set(s, item->head.time_ns, freed->device, freed->allocated_bytes,
              freed->reserved_bytes);
}

static void on_device_malloc(struct stream *s, const struct trace_item *item)
{
    const struct trace_device_malloc *m = trace_as_device_malloc(item);

    used_set(s, item->head.time_ns, m->device, m->used_bytes);
}

static void on_device_free(struct stream *s, const struct trace_item *item)
{
    const struct trace_device_free *freed = trace_as_device_free(item);

    used_set(s, item->head.time_ns, freed->device, freed->used_bytes);
}

static void on_library_memory(struct stream *s, const struct trace_item *item)
{
    const struct trace_library_memory *taken = trace_as_library_memory(item);

    used_set(s, item->head.time_ns, taken->device, taken->used_bytes);
}

static void on_name(struct stream *s, const struct trace_item *item)
{
    trace_names_add(&s->names, item);
}

static void on_module(struct stream *s, const struct trace_item *item)
{
    const struct trace_module *module = trace_as_module(item);
    const char *name = trace_names_get(&s->names, module->name);

    free(map_put(&s->modules, module->module + 1, xstrdup(name)));
}

static void on_oom(struct stream *s, const struct trace_item *item)
{
    char size[16], text[64];

    units_format_bytes(trace_as_oom(item)->requested_bytes, size, sizeof size);
    snprintf(text, sizeof text, "out of memory: %s asked for", size);
    perfetto_instant(s->process->to, track_of(s, item->head.thread),
                     item->head.time_ns, text);
}

static struct thread *thread_get(struct stream *s,
                                 const struct trace_item *item)
{
    return item->head.thread < THREADS_MAX ? &s->threads[item->head.thread]
                                           : NULL;
}

/* Whether a call that begins now is told. */
static bool call_admit(struct stream *s, uint64_t time_ns)
{
    struct perfetto_process *p = s->process;
    uint64_t distance =
        time_ns > p->peak_ns ? time_ns - p->peak_ns : p->peak_ns - time_ns;

    p->calls++;
    if (p->calls_told < PERFETTO_CALLS) {
        p->calls_told++;
        return true;
    }
    if (!p->peak_ns || distance > PERFETTO_PEAK_NS ||
        s->near_told == PERFETTO_CALLS_PEAK)
        return false;
    s->near_told++;
    return true;
}

static void thread_name(struct stream *s, struct thread *t, uint32_t number)
{
    char name[48];

    t->named = true;
    snprintf(name, sizeof name, "modules, thread %u", number);
    perfetto_name_thread(s->process->to, track_of(s, number), name);
}

static void on_module_enter(struct stream *s, const struct trace_item *item)
{
    struct thread *t = thread_get(s, item);
    uint32_t module = (uint32_t)trace_as_module_enter(item)->module;

    if (!t)
        return;
    bool told = call_admit(s, item->head.time_ns);
    xgrow(&t->open, t->count, &t->capacity, sizeof *t->open);
    t->open[t->count++] = (struct call){module, told};
    if (!told)
        return;
    if (!t->named)
        thread_name(s, t, item->head.thread);
    const char *name = map_get(&s->modules, (uint64_t)module + 1);
    perfetto_slice_begin(s->process->to, track_of(s, item->head.thread),
                         item->head.time_ns, name ? name : "?", NULL, 0);
}

static void call_close(struct stream *s, struct thread *t, uint32_t number,
                       uint64_t time_ns)
{
    if (t->open[--t->count].told)
        perfetto_slice_end(s->process->to, track_of(s, number), time_ns);
}

/* Calls that an exception kept from being left end with the one around them,
 * as in src/capture/core/torch/tag.c. */
static void on_module_leave(struct stream *s, const struct trace_item *item)
{
    struct thread *t = thread_get(s, item);
    uint32_t module = (uint32_t)trace_as_module_leave(item)->module;
    size_t at = t ? t->count : 0;

    while (at && t->open[at - 1].module != module)
        at--;
    if (!at)
        return;
    while (t->count >= at)
        call_close(s, t, item->head.thread, item->head.time_ns);
}

static void (*const handlers[])(struct stream *, const struct trace_item *) = {
    [TRACE_DEVICE] = on_device,
    [TRACE_DEVICE_RESET] = on_device_reset,
    [TRACE_NAME] = on_name,
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

static void stream_take(struct stream *s, const struct trace_item *item)
{
    unsigned kind = item->head.kind;

    s->ordinal++;
    if (item->head.time_ns > s->time_ns)
        s->time_ns = item->head.time_ns;
    if (kind < sizeof handlers / sizeof *handlers && handlers[kind])
        handlers[kind](s, item);
}

/* What is open when the process ends, ends with it. */
static void stream_finish(struct stream *s)
{
    for (uint32_t i = 0; i < THREADS_MAX; i++)
        while (s->threads[i].count)
            call_close(s, &s->threads[i], i, s->time_ns);
    s->process->calls_told += s->near_told;
    for (unsigned i = 0; s->process->counters && i < SESSION_DEVICES; i++)
        perfetto_card_write(&s->cards[i], s->process->to, s->process->track, i);
}

static void stream_fini(struct stream *s)
{
    size_t cursor = 0;

    for (void *name; (name = map_next(&s->modules, &cursor));)
        free(name);
    map_fini(&s->modules);
    for (size_t i = 0; i < THREADS_MAX; i++)
        free(s->threads[i].open);
    for (size_t i = 0; i < SESSION_DEVICES; i++)
        perfetto_card_fini(&s->cards[i]);
    trace_names_fini(&s->names);
    free(s);
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
                            "the host's, while it ran the command without a "
                            "GPU: no time here is a GPU's");
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

int perfetto_trace_start(const char *path, uint64_t *time_ns, struct err *err)
{
    struct trace_reader reader;
    struct trace_item item;

    *time_ns = 0;
    if (trace_reader_open(&reader, path, err))
        return -1;
    int rc = trace_reader_next(&reader, &item, err);
    if (rc > 0)
        *time_ns = item.head.time_ns;
    trace_reader_close(&reader);
    return rc < 0 ? -1 : 0;
}

int perfetto_trace_write(struct perfetto_process *process, const char *path,
                         struct err *err)
{
    struct trace_reader reader;
    struct trace_item item;
    int rc;

    process->calls = process->calls_told = 0;
    if (trace_reader_open(&reader, path, err))
        return -1;
    struct stream *s = xcalloc(1, sizeof *s);
    s->process = process;
    for (unsigned i = 0; i < SESSION_DEVICES; i++)
        s->card_of[i] = i;
    while ((rc = trace_reader_next(&reader, &item, err)) > 0)
        stream_take(s, &item);
    stream_finish(s);
    stream_fini(s);
    trace_reader_close(&reader);
    return rc;
}
