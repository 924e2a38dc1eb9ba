/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/replicas.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/map.h"
#include "common/base/range.h"
#include "common/base/xmalloc.h"
#include "memsim/change/bucket_rule.h"
#include "memsim/change/gradient_marks.h"
#include "memsim/change/group_span.h"
#include "memsim/change/side.h"

#define MIB UINT64_C(1048576)

/* Handles that no profile has. */
#define COMM_STREAM   (UINT64_C(1) << 40)
#define COMMUNICATOR  ((UINT64_C(1) << 40) + 1)
#define EVENTS        (UINT64_C(1) << 41)
#define ID_BYTES      24

/* What a call of each costs the host: a launch by an operator, another one. */
#define LAUNCH_NS 6000
#define CALL_NS   1000

#define BLOCK_THREADS 128 /* of PyTorch's elementwise kernels, each of 4 */
#define BLOCK_LOADS   4

#define SCALED(type)                                                           \
    "void at::native::vectorized_elementwise_kernel<4, "                       \
    "at::native::BUnaryFunctor<" type ", " type ", " type ", "                 \
    "at::native::binary_internal::MulFunctor<" type "> >, "                    \
    "std::array<char*, 2ul> >()"
static const char reduce_name[] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";

/* A step that is changed. */
struct pass {
    struct records *r;
    struct rewrite *w;
    uint32_t group;
    struct range members; /* that average with this rank */
    uint32_t names; /* ids from here on: two kernels, the collective */
    bool begun;     /* names and the communicator are there */
    const struct gradient_mark *all; /* of a backward; borrowed */
    size_t count;
    size_t *ends;
    size_t buckets;
    uint64_t events; /* made so far */
    uint64_t stream; /* of the gradients */
};

/* --- marks ---------------------------------------------------------------- */

/* The gradients of a step, backward after backward. */
struct marks {
    struct gradient_mark *all;
    size_t count, capacity;
};

static void marks_read(struct marks *m, const struct records *r, size_t count,
                       const struct step *step)
{
    struct gradient_mark g;

    m->count = 0;
    for (size_t i = step->first; i < step->end && i < count; i++)
        if (gradient_mark_read(r, i, &g)) {
            xgrow(&m->all, m->count, &m->capacity, sizeof *m->all);
            m->all[m->count++] = g;
        }
}

/* Did the script launch something between the marks A and B, by another thread
 * than autograd's? Then B is of another backward. */
static bool is_between(const struct records *r, const struct gradient_mark *a,
                       const struct gradient_mark *b)
{
    for (size_t i = a->mark; i < b->mark; i++)
        if ((r->all[i].kind == TRACE_LAUNCH ||
             r->all[i].kind == TRACE_COLLECTIVE) &&
            r->all[i].thread != r->all[a->mark].thread)
            return true;
    return false;
}

/* The end of the backward that gradient FIRST is of. */
static size_t backward_end(const struct marks *m, const struct records *r,
                           size_t first)
{
    size_t end = first + 1;

    while (end < m->count && !is_between(r, &m->all[end - 1], &m->all[end]))
        end++;
    return end;
}

static bool is_same(const struct gradient_mark *a,
                    const struct gradient_mark *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i].elements != b[i].elements || a[i].each != b[i].each)
            return false;
    return true;
}

/* Are the gradients [FIRST, END) accumulated, so that the same ones of a later
 * backward are averaged? */
static bool is_accumulated(const struct marks *m, const struct records *r,
                           size_t first, size_t end)
{
    for (size_t at = end, until; at < m->count; at = until) {
        until = backward_end(m, r, at);
        if (until - at == end - first &&
            is_same(m->all + first, m->all + at, end - first))
            return true;
    }
    return false;
}

static void pass_cut(struct pass *p)
{
    const struct bucket_rule rule = {MIB, 25 * MIB}; /* PyTorch's default */
    uint64_t *sizes = xcalloc(p->count + 1, sizeof *sizes);
    const struct bucket_gradients g = {sizes, p->count, 1};

    for (size_t i = 0; i < p->count; i++)
        sizes[i] = p->all[i].elements * p->all[i].each;
    p->ends = xcalloc(p->count + 1, sizeof *p->ends);
    p->buckets = bucket_cut(&rule, &g, p->ends);
    free(sizes);
}

/* The stream of the last work before record AT. */
static uint64_t stream_before(const struct records *r, size_t at)
{
    while (at--)
        if (r->all[at].kind == TRACE_LAUNCH)
            return ((const struct trace_work *)records_fields(r, &r->all[at]))
                ->stream;
    return 0;
}

/* --- records -------------------------------------------------------------- */

/* An edit that puts records in place of the mark AT. */
struct putting {
    struct pass *p;
    size_t at;
    struct edit edit;
};

static void put_bytes(struct putting *g, enum trace_kind kind,
                      const uint64_t *words, size_t count, const char *text,
                      size_t bytes)
{
    struct records *r = g->p->r;
    struct record like = r->all[g->at];
    uint64_t fields[TRACE_FIELDS_MAX] = {0};
    size_t index;

    memcpy(fields, words, count * sizeof *fields);
    like.kind = kind;
    like.field_count = (uint32_t)count;
    like.text_bytes = (uint32_t)bytes;
    like.time_ns += g->edit.lasts_ns;
    index = records_add(r, &like, fields, text);
    if (!g->edit.copies++)
        g->edit.first = index;
}

static void record_put(struct putting *g, enum trace_kind kind,
                       const uint64_t *words, size_t count, const char *text)
{
    put_bytes(g, kind, words, count, text, strlen(text));
}

#define PUT(g, kind, ...)                                                      \
    record_put(g, TRACE_##kind, TRACE_WORDS(kind, __VA_ARGS__),                \
               TRACE_WORD_COUNT(kind), "")

static void put_head(struct putting *g)
{
    static const char *const texts[] = {SCALED("float"),
                                        SCALED("c10::BFloat16"), reduce_name};
    struct pass *p = g->p;
    char id[ID_BYTES + 1 + sizeof p->members];

    if (p->begun)
        return;
    p->begun = true;
    for (uint32_t i = 0; i < 3; i++)
        record_put(g, TRACE_NAME, TRACE_WORDS(NAME, .name = p->names + i),
                   TRACE_WORD_COUNT(NAME), texts[i]);
    snprintf(id, ID_BYTES + 1, "data parallel %-10" PRIu32, p->group);
    memcpy(id + ID_BYTES, &p->members, sizeof p->members);
    put_bytes(g, TRACE_COMMUNICATOR,
              TRACE_WORDS(COMMUNICATOR, .communicator = COMMUNICATOR,
                          .ranks = p->members.count, .ranges = 1),
              TRACE_WORD_COUNT(COMMUNICATOR), id,
              ID_BYTES + sizeof p->members);
    PUT(g, STREAM_CREATE, .stream = COMM_STREAM, .flags = 1);
}

/* Over the ranks' number, into the bucket. */
static void put_scaled(struct putting *g, const struct gradient_mark *of)
{
    uint64_t threads = BLOCK_THREADS * BLOCK_LOADS;
    uint64_t blocks = (of->elements + threads - 1) / threads;

    PUT(g, LAUNCH, .name = g->p->names + (of->each == 2),
        .stream = g->p->stream,
        .grid_x_y = trace_pack((uint32_t)(blocks < UINT32_MAX ? blocks : 1), 1),
        .grid_z_block_x = trace_pack(1, BLOCK_THREADS),
        .block_y_z = trace_pack(1, 1),
        .shared_bytes_rule = trace_pack(0, TRACE_RULE_ELEMENTWISE),
        .a = of->elements, .b = 2, .c = of->each | of->each << 8);
    g->edit.lasts_ns += LAUNCH_NS;
}

/* The all-reduce of bucket INDEX, which is full. */
static void put_reduce(struct putting *g, size_t index)
{
    struct pass *p = g->p;
    uint64_t ready = EVENTS + p->events + 2 * index, done = ready + 1;
    uint64_t bytes = 0;

    for (size_t i = index ? p->ends[index - 1] : 0; i < p->ends[index]; i++)
        bytes += p->all[i].elements * p->all[i].each;
    PUT(g, EVENT_RECORD, .stream = p->stream, .event = ready);
    PUT(g, STREAM_WAIT, .stream = COMM_STREAM, .event = ready);
    PUT(g, COLLECTIVE, .name = p->names + 2, .stream = COMM_STREAM,
        .communicator = COMMUNICATOR, .ranks = p->members.count,
        .count = bytes / p->all[0].each, .bytes = bytes);
    PUT(g, EVENT_RECORD, .stream = COMM_STREAM, .event = done);
    g->edit.lasts_ns += LAUNCH_NS + 3 * CALL_NS;
}

/* Behind the last bucket: waits, and the averages back into the gradients. */
static void put_end(struct putting *g)
{
    struct pass *p = g->p;

    for (size_t b = 0; b < p->buckets; b++) {
        PUT(g, STREAM_WAIT, .stream = p->stream,
            .event = EVENTS + p->events + 2 * b + 1);
        g->edit.lasts_ns += CALL_NS;
        for (size_t i = b ? p->ends[b - 1] : 0; i < p->ends[b]; i++) {
            PUT(g, COPY, .stream = p->stream,
                .direction = TRACE_DEVICE_TO_DEVICE,
                .bytes = p->all[i].elements * p->all[i].each);
            g->edit.lasts_ns += LAUNCH_NS;
        }
    }
}

static void pass_put(struct pass *p)
{
    size_t bucket = 0;

    p->stream = stream_before(p->r, p->all[0].mark);
    for (size_t i = 0; i < p->count; i++) {
        size_t at = p->all[i].mark;
        struct putting g = {p, at, {EDIT_REPLACE, at, at + 1, 0, 0, 0, 0}};
        put_head(&g);
        put_scaled(&g, &p->all[i]);
        if (i + 1 == p->ends[bucket])
            put_reduce(&g, bucket++);
        if (i + 1 == p->count)
            put_end(&g);
        rewrite_add(p->w, &g.edit);
    }
    p->events += 2 * p->buckets;
}

/* --- all ------------------------------------------------------------------ */

static uint32_t names_end(const struct records *r)
{
    uint64_t most = 0;

    for (size_t i = 0; i < r->count; i++)
        if (r->all[i].kind == TRACE_NAME) {
            const struct trace_name *name =
                (const struct trace_name *)records_fields(r, &r->all[i]);
            most = name->name > most ? name->name : most;
        }
    return (uint32_t)most + 1;
}

static const struct trace_collective *collective_at(const struct records *r,
                                                    size_t index)
{
    return r->all[index].kind == TRACE_COLLECTIVE
               ? (const struct trace_collective *)records_fields(r,
                                                                 &r->all[index])
               : NULL;
}

static bool is_named(const struct records *r, const struct trace_collective *c,
                     const char *kind)
{
    return strstr(trace_names_get(&r->names, c->name), kind) != NULL;
}

/* Puts the groups that add tensors in STEP before the gradient at record MARK
 * into GROUPS: those of layers that are split over ranks do. */
static void forward_groups(const struct records *r, const struct step *step,
                           size_t mark, struct map *groups)
{
    for (size_t i = step->first; i < mark; i++) {
        const struct trace_collective *c = collective_at(r, i);
        if (c && (is_named(r, c, "AllReduce") ||
                  is_named(r, c, "ReduceScatter")))
            map_put(groups, c->communicator, groups);
    }
}

/* Collectives of a step that may be those of gradients: no sends, no receives,
 * and none of a group that adds in the forward. */
static size_t step_collectives(const struct records *r, const struct step *step,
                               const struct marks *m)
{
    struct map groups = {.slots = NULL};
    size_t count = 0;

    if (m->count)
        forward_groups(r, step, m->all[0].mark, &groups);
    for (size_t i = step->first; i < step->end && i < r->count; i++) {
        const struct trace_collective *c = collective_at(r, i);
        count += c && !c->send && !c->receive &&
                 !map_get(&groups, c->communicator);
    }
    map_fini(&groups);
    return count;
}

static size_t count_collectives(const struct records *r)
{
    struct marks marks = {.count = 0};
    size_t count = 0;

    for (size_t i = 0; i < r->steps.count; i++) {
        marks_read(&marks, r, r->count, &r->steps.steps[i]);
        count += step_collectives(r, &r->steps.steps[i], &marks);
    }
    free(marks.all);
    return count;
}

/* The average of the backwards of a step that accumulate nothing for later
 * ones. */
static void step_put(struct pass *p, const struct marks *m,
                     struct replicas_report *report)
{
    report->gradients = report->buckets = 0;
    report->bytes = 0;
    for (size_t first = 0, end; first < m->count; first = end) {
        end = backward_end(m, p->r, first);
        report->accumulates |= is_accumulated(m, p->r, first, end);
        if (is_accumulated(m, p->r, first, end))
            continue;
        p->all = m->all + first;
        p->count = end - first;
        pass_cut(p);
        pass_put(p);
        report->gradients += (uint32_t)p->count;
        report->buckets += (uint32_t)p->buckets;
        for (size_t k = 0; k < p->count; k++)
            report->bytes += p->all[k].elements * p->all[k].each;
        free(p->ends);
    }
}

static void passes_put(struct pass *p, struct replicas_report *report)
{
    const struct step_list *steps = &p->r->steps;
    struct marks marks = {.count = 0};

    for (size_t i = 0; i < steps->count; i++) {
        marks_read(&marks, p->r, p->w->record_count, &steps->steps[i]);
        if (!marks.count)
            continue;
        step_put(p, &marks, report);
        report->steps++;
    }
    free(marks.all);
}

/* This rank of each replica. */
static struct range members_of(const struct replicas *replicas,
                               const struct records *r)
{
    uint32_t apart = group_span(r);

    return (struct range){replicas->group * apart, replicas->ranks,
                          (int32_t)(apart * replicas->stages)};
}

int replicas_change(const struct replicas *replicas, const char *from,
                    const char *to, struct replicas_report *report,
                    struct err *err)
{
    struct side side;
    int rc = 0;

    *report = (struct replicas_report){.steps = 0};
    if (side_read(&side, from, err))
        return -1;
    report->collectives = count_collectives(&side.records);
    struct rewrite w = rewrite_of(&side.records, &side.marks);
    struct pass pass = {.r = &side.records,
                        .w = &w,
                        .group = replicas->group,
                        .members = members_of(replicas, &side.records),
                        .names = names_end(&side.records)};
    if (!report->collectives) {
        passes_put(&pass, report);
        rc = report->steps
                 ? rewrite_write(&w, to, err)
                 : err_set(err,
                           "--dp: the profile does not say where gradients "
                           "are ready: record it with record_shapes=True, "
                           "and a backward in it");
    }
    free(w.edits);
    side_fini(&side);
    return rc;
}
