/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/replicas.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/range.h"
#include "common/base/xmalloc.h"
#include "memsim/change/bucket_rule.h"
#include "memsim/change/gradient_groups.h"
#include "memsim/change/gradient_marks.h"
#include "memsim/change/group_span.h"
#include "memsim/change/insertion.h"
#include "memsim/change/side.h"

#define MIB      UINT64_C(1048576)
#define ENDS_MAX 2 /* gradients by which two backwards of a layer may differ */

/* Handles that no profile has. */
#define COMM_STREAM   (UINT64_C(1) << 40)
#define COMMUNICATOR  ((UINT64_C(1) << 40) + 1)
#define EVENTS        (UINT64_C(1) << 41)

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

/* The gradients [first, end) of a step. */
struct span {
    size_t first, end;
};

/* Do A's gradients from FROM on equal B's, as far as both reach? */
static bool is_same_from(const struct marks *m, const struct span *a,
                         size_t from, const struct span *b)
{
    for (size_t i = a->first + from, k = b->first; i < a->end && k < b->end;
         i++, k++)
        if (m->all[i].elements != m->all[k].elements ||
            m->all[i].each != m->all[k].each)
            return false;
    return true;
}

/* The first backward of a step sets gradients, later ones add to them by
 * kernels of their own: cut at a layer of a profile, one may have a gradient or
 * two more at an end than the other. */
static bool is_same(const struct marks *m, const struct span *a,
                    const struct span *b)
{
    size_t counts[] = {a->end - a->first, b->end - b->first};
    size_t slack = (counts[0] < counts[1] ? counts[0] : counts[1]) / 8;

    slack = slack < ENDS_MAX ? slack : ENDS_MAX;
    if (counts[0] > counts[1] + slack || counts[1] > counts[0] + slack)
        return false;
    for (size_t from = 0; from <= slack; from++)
        if (is_same_from(m, a, from, b) || is_same_from(m, b, from, a))
            return true;
    return false;
}

/* Are the gradients A accumulated, so that the same ones of a later backward
 * are averaged? */
static bool is_accumulated(const struct marks *m, const struct records *r,
                           const struct span *a)
{
    struct span later = {a->end, a->end};

    for (; later.first < m->count; later.first = later.end) {
        later.end = backward_end(m, r, later.first);
        if (is_same(m, a, &later))
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

static void head_put(struct insertion *g, struct pass *p)
{
    static const char *const texts[] = {SCALED("float"),
                                        SCALED("c10::BFloat16"), reduce_name};

    if (p->begun)
        return;
    p->begun = true;
    for (uint32_t i = 0; i < 3; i++)
        insertion_name(g, p->names + i, texts[i]);
    insertion_communicator(g, COMMUNICATOR, p->group, &p->members);
    INSERTION_PUT(g, 0, STREAM_CREATE, .stream = COMM_STREAM, .flags = 1);
}

/* The all-reduce of bucket INDEX, which is full. */
static void reduce_put(struct insertion *g, const struct pass *p, size_t index)
{
    uint64_t ready = EVENTS + p->events + 2 * index, done = ready + 1;
    uint64_t bytes = 0;

    for (size_t i = index ? p->ends[index - 1] : 0; i < p->ends[index]; i++)
        bytes += p->all[i].elements * p->all[i].each;
    INSERTION_PUT(g, INSERTION_CALL_NS, EVENT_RECORD, .stream = p->stream,
                  .event = ready);
    INSERTION_PUT(g, INSERTION_CALL_NS, STREAM_WAIT, .stream = COMM_STREAM,
                  .event = ready);
    INSERTION_PUT(g, INSERTION_LAUNCH_NS, COLLECTIVE, .name = p->names + 2,
                  .stream = COMM_STREAM, .communicator = COMMUNICATOR,
                  .ranks = p->members.count, .count = bytes / p->all[0].each,
                  .bytes = bytes);
    INSERTION_PUT(g, INSERTION_CALL_NS, EVENT_RECORD, .stream = COMM_STREAM,
                  .event = done);
}

/* Behind the last bucket: waits, and the averages back into the gradients. */
static void end_put(struct insertion *g, const struct pass *p)
{
    for (size_t b = 0; b < p->buckets; b++) {
        INSERTION_PUT(g, INSERTION_CALL_NS, STREAM_WAIT, .stream = p->stream,
                      .event = EVENTS + p->events + 2 * b + 1);
        for (size_t i = b ? p->ends[b - 1] : 0; i < p->ends[b]; i++)
            INSERTION_PUT(g, INSERTION_LAUNCH_NS, COPY, .stream = p->stream,
                          .direction = TRACE_DEVICE_TO_DEVICE,
                          .bytes = p->all[i].elements * p->all[i].each);
    }
}

static void pass_put(struct pass *p)
{
    size_t bucket = 0;

    p->stream = stream_before(p->r, p->all[0].mark);
    for (size_t i = 0; i < p->count; i++) {
        const struct gradient_mark *of = &p->all[i];
        const struct insertion_elements scaled = {p->names + (of->each == 2),
                                                p->stream, of->elements,
                                                of->each};
        struct insertion g = insertion_at(p->r, of->mark);
        head_put(&g, p);
        insertion_elementwise(&g, &scaled); /* into the bucket */
        if (i + 1 == p->ends[bucket])
            reduce_put(&g, p, bucket++);
        if (i + 1 == p->count)
            end_put(&g, p);
        rewrite_add(p->w, &g.edit);
    }
    p->events += 2 * p->buckets;
}

/* --- all ------------------------------------------------------------------ */

/* The average of the backwards of a step that accumulate nothing for later
 * ones. */
static void step_put(struct pass *p, const struct marks *m,
                     struct replicas_report *report)
{
    report->gradients = report->buckets = 0;
    report->bytes = 0;
    for (struct span s = {0, 0}; s.first < m->count; s.first = s.end) {
        s.end = backward_end(m, p->r, s.first);
        if (is_accumulated(m, p->r, &s)) {
            report->accumulates = true;
            continue;
        }
        p->all = m->all + s.first;
        p->count = s.end - s.first;
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

struct range replicas_members(const struct replicas *replicas,
                              const struct records *r)
{
    uint32_t span = group_span(r); /* of all stages */

    return (struct range){replicas->group * (span / replicas->stages),
                          replicas->ranks, (int32_t)span};
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
    report->collectives = gradient_collectives(&side.records);
    struct rewrite w = rewrite_of(&side.records, &side.marks);
    struct pass pass = {.r = &side.records,
                        .w = &w,
                        .group = replicas->group,
                        .members = replicas_members(replicas, &side.records),
                        .names = insertion_names(&side.records)};
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
