/* SPDX-License-Identifier: Apache-2.0
 * From a Kineto file to arrays. Of the host only calls of CUDA and the
 * program's own ranges are kept: operators would be most of the memory. */
#include "memsim/import/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/hash.h"
#include "common/base/text_begins.h"
#include "common/base/xmalloc.h"
#include "common/profile/profile_format.h"

#define EVENTS_MAX (1u << 30)
#define TIME_MAX   (INT64_C(1) << 61) /* sums of a few cannot overflow */

#define ADD(p, array)                                                          \
    (xgrow(&(p)->array, (p)->array##_count, &(p)->array##_capacity,            \
           sizeof *(p)->array),                                                \
     &(p)->array[(p)->array##_count++])

struct take {
    struct profile *p;
    struct err *err;
};

/* The index of TEXT among the names; equal texts have the same one. */
static uint32_t name_id(struct profile *p, const char *text)
{
    uint64_t key = hash_text(HASH_START, text);
    char **known;

    for (; (known = map_get(&p->name_ids, key)); key++) {
        uint32_t id = (uint32_t)((uintptr_t)known - 1);

        if (strcmp(p->names[id], text) == 0)
            return id;
    }
    *ADD(p, names) = xstrdup(text);
    map_put(&p->name_ids, key, (void *)(uintptr_t)p->names_count);
    return (uint32_t)p->names_count - 1;
}

static uint64_t pair_key(int64_t a, int64_t b)
{
    return (uint64_t)a * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)b;
}

static uint32_t stream_id(struct profile *p, int64_t device, int64_t stream)
{
    uint64_t key = pair_key(device, stream);
    void *known = map_get(&p->stream_ids, key);

    if (known)
        return (uint32_t)((uintptr_t)known - 1);
    *ADD(p, streams) = (struct profile_stream){
        .device = device, .stream = stream, .last = PROFILE_NONE};
    map_put(&p->stream_ids, key, (void *)(uintptr_t)p->streams_count);
    return (uint32_t)p->streams_count - 1;
}

static uint32_t thread_id(struct profile *p, int64_t process, int64_t thread)
{
    uint64_t key = pair_key(process, thread);
    void *known = map_get(&p->thread_ids, key);

    if (known)
        return (uint32_t)((uintptr_t)known - 1);
    *ADD(p, threads) = (struct profile_thread){
        .process = process, .thread = thread, .last = PROFILE_NONE};
    map_put(&p->thread_ids, key, (void *)(uintptr_t)p->threads_count);
    return (uint32_t)p->threads_count - 1;
}

static uint32_t name_or_none(struct profile *p, const char *text)
{
    return text ? name_id(p, text) : PROFILE_NONE;
}

/* The ranks of a group of SIZE that TEXT lists, at least two of them; none
 * where they are not evenly apart. */
static struct range read_ranks(const char *text, int64_t size)
{
    struct range none = {0, 0, 0}, range = none;
    const char *at = text ? strchr(text, '[') : NULL;
    uint32_t rank;
    int length;

    for (; at && sscanf(at + 1, "%" SCNu32 "%n", &rank, &length) == 1;
         at = strchr(at + 1 + length, ','))
        if (!range_extend(&range, rank) || range.stride < 0)
            return none;
    if (range.count < 2 || size < range.count || size > UINT32_MAX)
        return none;
    range.count = (uint32_t)size;
    return range;
}

static uint32_t take_collective(struct profile *p,
                                const struct profile_event *e)
{
    if (!e->collective)
        return PROFILE_NONE;
    *ADD(p, collectives) = (struct profile_collective){
        .name = name_id(p, e->collective),
        .group = name_or_none(p, e->group),
        .type = name_or_none(p, e->type),
        .in_elements = e->in_elements,
        .out_elements = e->out_elements,
        .group_size = e->group_size,
        .ranks = read_ranks(e->group_ranks, e->group_size),
    };
    return (uint32_t)p->collectives_count - 1;
}

static void take_op(struct profile *p, const struct profile_event *e)
{
    *ADD(p, ops) = (struct profile_op){
        .start_ns = e->start_ns,
        .duration_ns = e->duration_ns,
        .launched_ns = e->launched_ns,
        .handover_ns = e->gap_ns,
        .correlation = e->correlation,
        .operator = e->external_id,
        .bytes = e->bytes > 0 ? (uint64_t)e->bytes : 0,
        .category = e->category,
        .name = name_id(p, e->name),
        .family = name_or_none(p, e->family),
        .work = e->work ? shapes_keep(&p->shapes, e->work) : PROFILE_NONE,
        .stream = stream_id(p, e->device,
                            e->stream != KINETO_NONE ? e->stream : e->thread),
        .call = PROFILE_NONE,
        .previous = PROFILE_NONE,
        .after = PROFILE_NONE,
        .collective = take_collective(p, e),
        .grid = {e->grid[0], e->grid[1], e->grid[2]},
        .block = {e->block[0], e->block[1], e->block[2]},
        .registers = e->registers,
        .shared_bytes = e->shared_bytes,
    };
}

static void take_call(struct profile *p, const struct profile_event *e)
{
    *ADD(p, calls) = (struct profile_call){
        .start_ns = e->start_ns,
        .duration_ns = e->duration_ns,
        .correlation = e->correlation,
        .name = name_id(p, e->name),
        .thread = thread_id(p, e->process, e->thread),
        .previous = PROFILE_NONE,
        .join = PROFILE_NONE,
        .waits = PROFILE_NONE,
    };
}

/* PyTorch's node at the end of a parameter's backward, whose input is the
 * gradient. */
static void take_gradient(struct profile *p, const struct profile_event *e)
{
    const char *const texts[4] = {[OPERATOR_DIMS] = e->input_dims,
                                  [OPERATOR_TYPES] = e->input_types};
    struct operator_call call;

    if (strcmp(e->name, "torch::autograd::AccumulateGrad") ||
        !e->input_dims || !e->input_types ||
        !operator_read(&call, e->name, texts) ||
        !(call.arguments[0].elements > 0))
        return;
    *ADD(p, gradients) = (struct profile_gradient){
        .ns = e->start_ns + e->duration_ns,
        .elements = (uint64_t)call.arguments[0].elements,
        .bytes = call.arguments[0].element_bytes,
        .thread = thread_id(p, e->process, e->thread)};
}

static void take_operator(struct profile *p, const struct profile_event *e)
{
    take_gradient(p, e);
    shapes_add(&p->shapes, e);
    *ADD(p, operators) = (struct profile_operator){
        .start_ns = e->start_ns,
        .thread = thread_id(p, e->process, e->thread)};
}

/* A step of memsim's own export is as long as the GPU needs. The importer wants
 * the host's time, as in a profile. */
static bool has_host_times(const struct profile_event *e)
{
    return e->host_start_ns > -TIME_MAX && e->host_end_ns < TIME_MAX &&
           e->host_start_ns <= e->host_end_ns;
}

static void take_mark(struct profile *p, const struct profile_event *e)
{
    bool host = has_host_times(e);

    *ADD(p, marks) = (struct profile_mark){
        .start_ns = host ? e->host_start_ns : e->start_ns,
        .duration_ns =
            host ? e->host_end_ns - e->host_start_ns : e->duration_ns,
        .name = name_id(p, e->name),
        .thread = thread_id(p, e->process, e->thread),
    };
}

/* ProfilerStep is an "Operator" in files of 2021. */
static bool is_mark(const struct profile_event *e)
{
    return e->category == KINETO_ANNOTATION ||
           (e->category == KINETO_OPERATOR &&
            profile_is_step(e->name));
}

static bool has_times(const struct profile_event *e)
{
    return e->start_ns > -TIME_MAX && e->start_ns < TIME_MAX &&
           e->duration_ns >= 0 && e->duration_ns < TIME_MAX;
}

static bool is_work(const struct profile_event *e)
{
    return e->category == KINETO_KERNEL || e->category == KINETO_COPY ||
           e->category == KINETO_SET;
}

static int take_event(void *context, const struct profile_event *e)
{
    struct take *take = context;
    struct profile *p = take->p;

    if (e->phase != 'X')
        return 0;
    if (!has_times(e)) {
        p->untimed += is_work(e);
        return 0;
    }
    if (p->ops_count + p->calls_count + p->marks_count >= EVENTS_MAX)
        return err_set(take->err, "%s: more than %u events; record fewer steps",
                       p->path, EVENTS_MAX);
    if (is_mark(e))
        take_mark(p, e);
    else if (e->category == KINETO_OPERATOR)
        take_operator(p, e);
    else if (e->category == KINETO_RUNTIME)
        take_call(p, e);
    else if (is_work(e))
        take_op(p, e);
    return 0;
}

static int compare_ns(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_ops(const void *a, const void *b)
{
    const struct profile_op *x = a, *y = b;
    int by_start = compare_ns(x->start_ns, y->start_ns);

    return by_start ? by_start : compare_ns(x->correlation, y->correlation);
}

/* The longer first: it is the outer one. */
static int compare_calls(const void *a, const void *b)
{
    const struct profile_call *x = a, *y = b;
    int by_start = compare_ns(x->start_ns, y->start_ns);

    if (by_start)
        return by_start;
    int by_length = compare_ns(y->duration_ns, x->duration_ns);
    return by_length ? by_length : compare_ns(x->correlation, y->correlation);
}

static int compare_marks(const void *a, const void *b)
{
    const struct profile_mark *x = a, *y = b;
    int by_start = compare_ns(x->start_ns, y->start_ns);

    return by_start ? by_start : compare_ns(y->duration_ns, x->duration_ns);
}

static int compare_operators(const void *a, const void *b)
{
    const struct profile_operator *x = a, *y = b;

    return compare_ns(x->start_ns, y->start_ns);
}

static void sort_all(struct profile *p)
{
    if (p->ops_count)
        qsort(p->ops, p->ops_count, sizeof *p->ops, compare_ops);
    if (p->calls_count)
        qsort(p->calls, p->calls_count, sizeof *p->calls, compare_calls);
    if (p->marks_count)
        qsort(p->marks, p->marks_count, sizeof *p->marks, compare_marks);
    if (p->operators_count)
        qsort(p->operators, p->operators_count, sizeof *p->operators,
              compare_operators);
}

bool profile_is_database(const char *path)
{
    return profile_format_of(path)->is;
}

int profile_ranks(const char *path, uint32_t *ranks, struct err *err)
{
    const struct profile_format *format = profile_format_of(path);

    *ranks = 1;
    return format->processes ? format->processes(path, ranks, err) : 0;
}

/* Is it a profile of AMD's runtime? Some files do not name the GPU. */
static bool is_rocm(const struct profile *p)
{
    static const char *const makes[] = {"AMD", "Radeon", "Instinct"};

    for (size_t i = 0; i < sizeof makes / sizeof *makes; i++)
        if (strstr(p->info.gpu, makes[i]))
            return true;
    for (size_t i = 0; i < p->calls_count; i++) {
        const char *name = p->names[p->calls[i].name];
        if (text_begins(name, "hip") && name[3] >= 'A' && name[3] <= 'Z')
            return true;
    }
    return false;
}

static int check_read(const struct profile *p, struct err *err)
{
    bool named = p->info.gpu[0];

    if (is_rocm(p))
        return err_set(err,
                       "%s: a profile of ROCm%s%s%s: memsim knows NVIDIA's "
                       "GPUs and CUDA alone, and reads no profiles of others",
                       p->path, named ? " (" : "", p->info.gpu,
                       named ? ")" : "");
    if (p->untimed > p->ops_count)
        return err_set(err,
                       "%s: %" PRIu64 " of its %" PRIu64 " GPU events have no "
                       "time, or one that cannot be: the file is damaged",
                       p->path, p->untimed, p->untimed + p->ops_count);
    if (!p->ops_count && p->info.truncated)
        return err_set(err,
                       "%s: the file ends in the middle, and no GPU events "
                       "come before: it is damaged, or not written to its end",
                       p->path);
    if (!p->ops_count)
        return err_set(err,
                       "%s: no GPU events in it; record with "
                       "activities=[ProfilerActivity.CPU, "
                       "ProfilerActivity.CUDA]",
                       p->path);
    return 0;
}

int profile_read(struct profile *p, const char *path, uint32_t rank,
                 struct err *err)
{
    struct take take = {p, err};

    memset(p, 0, sizeof *p);
    p->path = path;
    err_clear(err);
    if (profile_format_of(path)->read(path, rank, take_event, &take, &p->info,
                                      err) ||
        err->text[0] || check_read(p, err))
        return -1;
    sort_all(p);
    return 0;
}

void profile_fini(struct profile *p)
{
    for (size_t i = 0; i < p->names_count; i++)
        free(p->names[i]);
    free(p->names);
    free(p->ops);
    free(p->calls);
    free(p->marks);
    free(p->operators);
    free(p->gradients);
    free(p->collectives);
    free(p->streams);
    free(p->threads);
    shapes_fini(&p->shapes);
    map_fini(&p->name_ids);
    map_fini(&p->stream_ids);
    map_fini(&p->thread_ids);
}
