/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/report/page/time_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json_add.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "memsim/time/time_log.h"
#include "memsim/time/timing.h"

#define PAGE_MAX   60000 /* operations, and calls: what a page draws at once */
#define NAME_BYTES 400

/* Texts that the lists have by number. */
struct texts {
    cJSON *list;
    struct map numbers; /* + 1, by a key of the text's source */
    int count;
};

enum text_source {
    TEXT_OP,     /* by operator and kind */
    TEXT_NAME,   /* of the trace */
    TEXT_MODULE,
    TEXT_FAMILY,
    TEXT_BASIS,
    TEXT_CALL,
};

struct page {
    const struct time_log *log;
    cJSON *object, *lists;
    struct texts names, tracks;
    struct time_log_streams streams;
    uint64_t origin_ns;
    size_t op_count, call_count; /* that are shown */
};

/* --- lists ---------------------------------------------------------------- */

static uint64_t key_of(enum text_source source, uint64_t id)
{
    return ((uint64_t)source + 1) << 56 | id;
}

/* The number of the text of KEY; -1: it has none so far. */
static int text_find(const struct texts *t, uint64_t key)
{
    return (int)(uintptr_t)map_get(&t->numbers, key) - 1;
}

static int text_put(struct texts *t, uint64_t key, const char *text)
{
    char cut[NAME_BYTES];

    snprintf(cut, sizeof cut, "%.*s", (int)sizeof cut - 1, text);
    cJSON_AddItemToArray(t->list, cJSON_CreateString(cut));
    map_put(&t->numbers, key, (void *)(uintptr_t)(t->count + 1));
    return t->count++;
}

static int text_of(struct texts *t, enum text_source source, uint64_t id,
                   const char *text)
{
    int found = text_find(t, key_of(source, id));

    return found >= 0 ? found : text_put(t, key_of(source, id), text);
}

/* A list of COUNT numbers, each as VALUE says. */
static void add_list(struct page *p, const char *name, size_t count,
                     double (*value)(struct page *p, size_t i))
{
    double *values = xcalloc(count + 1, sizeof *values);

    for (size_t i = 0; i < count; i++)
        values[i] = value(p, i);
    cJSON_AddItemToObject(p->lists, name,
                          cJSON_CreateDoubleArray(values, (int)count));
    free(values);
}

static double ms_since(const struct page *p, uint64_t ns)
{
    return (double)ns - (double)p->origin_ns;
}

/* The place of the operation TAG. */
static double op_place(const struct page *p, uint64_t tag)
{
    const struct simulation_op *op = tag ? time_log_op(p->log, tag) : NULL;
    size_t at = op ? (size_t)(op - p->log->ops) : p->op_count;

    return at < p->op_count ? (double)at : -1;
}

/* --- operations ----------------------------------------------------------- */

static double op_track(struct page *p, size_t i)
{
    const struct simulation_op *op = &p->log->ops[i];
    bool is_new;
    uint32_t stream =
        time_log_stream(&p->streams, op->device, op->stream, &is_new);
    char text[64];

    snprintf(text, sizeof text, "GPU %u, stream %u", op->device, stream);
    return text_of(&p->tracks, TEXT_OP, (uint64_t)op->device << 32 | stream,
                   text);
}

static double op_start(struct page *p, size_t i)
{
    return ms_since(p, p->log->ops[i].done.start_ns);
}

static double op_duration(struct page *p, size_t i)
{
    const struct sim_done *d = &p->log->ops[i].done;

    return (double)(d->end_ns - d->start_ns);
}

static double op_launched(struct page *p, size_t i)
{
    return ms_since(p, p->log->ops[i].done.called_ns);
}

static double op_name(struct page *p, size_t i)
{
    const struct simulation_op *op = &p->log->ops[i];
    uint64_t id = op->name | (uint64_t)op->kind << 32 |
                  (uint64_t)op->price.family << 40 |
                  (uint64_t)op->price.engine << 48;
    int found = text_find(&p->names, key_of(TEXT_OP, id));
    char text[1024];

    if (found >= 0)
        return found;
    time_log_op_name(op, &p->log->names, text, sizeof text);
    return text_put(&p->names, key_of(TEXT_OP, id), text);
}

static double op_module(struct page *p, size_t i)
{
    uint32_t module = p->log->ops[i].module;
    int found = text_find(&p->names, key_of(TEXT_MODULE, module));

    if (!module || found >= 0)
        return found;
    char *title = module_table_title(&p->log->modules, module);
    found = text_put(&p->names, key_of(TEXT_MODULE, module), title);
    free(title);
    return found;
}

static double op_operator(struct page *p, size_t i)
{
    uint32_t operator= p->log->ops[i].operator;

    if (!operator)
        return -1;
    return text_of(&p->names, TEXT_NAME, operator,
                   trace_names_get(&p->log->names, operator));
}

static double op_family(struct page *p, size_t i)
{
    enum work_family family = p->log->ops[i].price.family;

    return text_of(&p->names, TEXT_FAMILY, (uint64_t)family,
                   work_family_name(family));
}

static double op_basis(struct page *p, size_t i)
{
    enum cost_basis basis = p->log->ops[i].price.answer.basis;

    return text_of(&p->names, TEXT_BASIS, (uint64_t)basis,
                   cost_basis_name(basis));
}

static double op_bytes(struct page *p, size_t i)
{
    return (double)p->log->ops[i].bytes;
}

static double op_call(struct page *p, size_t i)
{
    const struct simulation_call *call =
        time_log_call(p->log, p->log->ops[i].call);
    size_t at = call ? (size_t)(call - p->log->calls) : p->call_count;

    return at < p->call_count ? (double)at : -1;
}

static double op_cause(struct page *p, size_t i)
{
    return (double)p->log->ops[i].done.cause;
}

static double op_waited(struct page *p, size_t i)
{
    return op_place(p, p->log->ops[i].done.cause_tag);
}

static void add_operations(struct page *p)
{
    p->lists = cJSON_AddObjectToObject(p->object, "operations");
    add_list(p, "track", p->op_count, op_track);
    add_list(p, "start_ns", p->op_count, op_start);
    add_list(p, "duration_ns", p->op_count, op_duration);
    add_list(p, "launched_ns", p->op_count, op_launched);
    add_list(p, "name", p->op_count, op_name);
    add_list(p, "module", p->op_count, op_module);
    add_list(p, "operator", p->op_count, op_operator);
    add_list(p, "family", p->op_count, op_family);
    add_list(p, "basis", p->op_count, op_basis);
    add_list(p, "bytes", p->op_count, op_bytes);
    add_list(p, "call", p->op_count, op_call);
    add_list(p, "cause", p->op_count, op_cause);
    add_list(p, "waited_for", p->op_count, op_waited);
}

/* --- calls ---------------------------------------------------------------- */

static double call_track(struct page *p, size_t i)
{
    uint32_t thread = p->log->calls[i].thread;
    char text[64];

    snprintf(text, sizeof text, "host, thread %u", thread);
    return text_of(&p->tracks, TEXT_CALL, thread, text);
}

static double call_start(struct page *p, size_t i)
{
    return ms_since(p, p->log->calls[i].start_ns);
}

static double call_duration(struct page *p, size_t i)
{
    const struct simulation_call *call = &p->log->calls[i];

    return (double)(call->end_ns - call->start_ns);
}

static double call_name(struct page *p, size_t i)
{
    enum op_kind kind = p->log->calls[i].kind;

    return text_of(&p->names, TEXT_CALL, (uint64_t)kind,
                   time_log_call_name(kind));
}

static double call_operation(struct page *p, size_t i)
{
    return op_place(p, p->log->calls[i].tag);
}

static double call_waited(struct page *p, size_t i)
{
    return op_place(p, p->log->calls[i].woken_by);
}

static void add_calls(struct page *p)
{
    p->lists = cJSON_AddObjectToObject(p->object, "calls");
    add_list(p, "track", p->call_count, call_track);
    add_list(p, "start_ns", p->call_count, call_start);
    add_list(p, "duration_ns", p->call_count, call_duration);
    add_list(p, "name", p->call_count, call_name);
    add_list(p, "operation", p->call_count, call_operation);
    add_list(p, "waited_for", p->call_count, call_waited);
}

/* --- the timeline --------------------------------------------------------- */

static uint64_t earliest_after(const struct time_log *log, uint64_t begin_ns)
{
    for (size_t i = 0; i < log->call_count; i++)
        if (log->calls[i].start_ns < begin_ns)
            begin_ns = log->calls[i].start_ns;
    for (size_t i = 0; i < log->op_count; i++)
        if (log->ops[i].done.start_ns < begin_ns)
            begin_ns = log->ops[i].done.start_ns;
    return begin_ns;
}

static void rank_add(cJSON *rank, const struct time_log *log, size_t step)
{
    const struct simulation *s = &log->simulation;
    struct page p = {.log = log,
                     .op_count =
                         log->op_count < PAGE_MAX ? log->op_count : PAGE_MAX,
                     .call_count = log->call_count < PAGE_MAX
                                       ? log->call_count
                                       : PAGE_MAX};

    p.origin_ns = earliest_after(log, s->begins[step].ns);
    p.object = cJSON_AddObjectToObject(rank, "step_timeline");
    json_add_uint(p.object, "step_index", step);
    json_add_uint(p.object, "begin_ns", s->begins[step].ns - p.origin_ns);
    json_add_uint(p.object, "end_ns", s->ends[step].ns - p.origin_ns);
    p.names.list = cJSON_AddArrayToObject(p.object, "names");
    p.tracks.list = cJSON_AddArrayToObject(p.object, "tracks");
    add_operations(&p);
    add_calls(&p);
    json_add_uint(p.object, "dropped",
                  log->ops_dropped + log->calls_dropped + log->op_count -
                      p.op_count + log->call_count - p.call_count);
    time_log_streams_fini(&p.streams);
    map_fini(&p.names.numbers);
    map_fini(&p.tracks.numbers);
}

void time_page_add(cJSON *root, const struct result *result)
{
    cJSON *rank = cJSON_GetObjectItemCaseSensitive(root, "ranks")->child;

    for (size_t i = 0; rank && i < result->rank_count; i++, rank = rank->next) {
        const struct result_rank *r = &result->ranks[i];
        if (r->step && r->timing && r->step->op_count &&
            r->timing->typical < r->step->simulation.steps.count)
            rank_add(rank, r->step, r->timing->typical);
    }
}
