/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/averages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/gradient_groups.h"
#include "memsim/change/gradient_marks.h"
#include "memsim/change/side.h"

/* A profile while its averages are taken out. */
struct taking {
    const struct records *r;
    struct rewrite *w;
    const struct gradient_group *group;
    struct averages_report *report;
};

/* What DDP's buckets of a step have. */
struct sums {
    uint64_t bucketed, reduced; /* bytes */
    struct gradient_mark *all;  /* the gradients of the buckets, in order */
    size_t count, capacity;
    size_t copied; /* of them, back from the buckets */
};

static int take_refuse(const char *why, struct err *err)
{
    return err_set(err,
                   "--change: stages cannot be made of this profile: %s. A "
                   "profile of the job without data parallelism has what is "
                   "needed: --dp N puts that in",
                   why);
}

/* --- records -------------------------------------------------------------- */

static bool is_kind(const struct records *r, size_t index, enum trace_kind kind)
{
    return index < r->count && r->all[index].kind == kind;
}

/* Leaves operation INDEX out, with what memsim import writes of it: before it a
 * wait, a pause and its times, behind it the event of its end. */
static void operation_drop(struct rewrite *w, size_t index)
{
    const struct records *r = w->records;
    size_t from = index, until = index + 1;

    from -= from && is_kind(r, from - 1, TRACE_MEASURED);
    if (from > 1 && is_kind(r, from - 1, TRACE_HOST_FUNCTION) &&
        is_kind(r, from - 2, TRACE_MEASURED))
        from -= 2;
    from -= from && is_kind(r, from - 1, TRACE_STREAM_WAIT);
    until += is_kind(r, until, TRACE_EVENT_RECORD);
    rewrite_add(w, &(struct edit){.kind = EDIT_DROP,
                                  .from = from,
                                  .until = until});
}

/* Reducer::mark_variable_ready_dense: bucket_view = grad / ranks. */
static bool is_bucketing(const struct records *r, size_t index,
                         const struct gradient_mark *g)
{
    const struct trace_launch *l =
        (const struct trace_launch *)records_fields(r, &r->all[index]);

    if (r->all[index].kind != TRACE_LAUNCH ||
        l->shared_bytes_rule >> 32 != TRACE_RULE_ELEMENTWISE ||
        l->a != g->elements)
        return false;
    const char *name = trace_names_get(&r->names, l->name);
    return strstr(name, "UnaryFunctor") && strstr(name, "MulFunctor");
}

/* The next operation of a kernel or a copy by the thread of record INDEX;
 * END: none. */
static size_t next_of_thread(const struct records *r, size_t index, size_t end)
{
    for (size_t i = index + 1; i < end; i++)
        if (r->all[i].thread == r->all[index].thread &&
            (r->all[i].kind == TRACE_LAUNCH || r->all[i].kind == TRACE_COPY))
            return i;
    return end;
}

static bool is_copy_back(const struct records *r, size_t index,
                         const struct gradient_mark *g)
{
    const struct trace_copy *c =
        (const struct trace_copy *)records_fields(r, &r->all[index]);

    return r->all[index].kind == TRACE_COPY &&
           r->all[index].thread == r->all[g->mark].thread &&
           c->direction == TRACE_DEVICE_TO_DEVICE &&
           c->bytes == g->elements * g->each;
}

/* --- a step --------------------------------------------------------------- */

static void reduce_take(const struct taking *t, size_t index, struct sums *s)
{
    const struct trace_collective *c =
        (const struct trace_collective *)records_fields(t->r,
                                                        &t->r->all[index]);

    if (t->r->all[index].kind != TRACE_COLLECTIVE ||
        c->communicator != t->group->communicator ||
        c->bytes <= GRADIENT_SMALL_BYTES)
        return;
    s->reduced += c->bytes;
    t->report->ranks = (uint32_t)c->ranks;
    t->report->reduces++;
    operation_drop(t->w, index);
}

static void gradient_take(const struct taking *t, size_t index, size_t end,
                          struct sums *s)
{
    struct gradient_mark g;

    if (!gradient_mark_read(t->r, index, &g))
        return;
    size_t next = next_of_thread(t->r, index, end);
    if (next == end || !is_bucketing(t->r, next, &g))
        return;
    operation_drop(t->w, next);
    s->bucketed += g.elements * g.each;
    xgrow(&s->all, s->count, &s->capacity, sizeof *s->all);
    s->all[s->count++] = g;
}

/* Copies come back in the order in which the gradients were ready. */
static void copies_take(const struct taking *t, size_t end, struct sums *s)
{
    size_t from = s->count ? s->all[s->count - 1].mark : end;

    for (size_t i = from; i < end && s->copied < s->count; i++)
        if (is_copy_back(t->r, i, &s->all[s->copied])) {
            operation_drop(t->w, i);
            s->copied++;
        }
}

static int step_take(const struct taking *t, const struct step *step,
                     struct err *err)
{
    size_t end = step->end < t->r->count ? step->end : t->r->count;
    struct sums s = {.count = 0};

    for (size_t i = step->first; i < end; i++) {
        reduce_take(t, i, &s);
        gradient_take(t, i, end, &s);
    }
    copies_take(t, end, &s);
    free(s.all);
    if (s.bucketed != s.reduced || (s.copied && s.copied != s.count))
        return take_refuse(
            "its gradients are averaged in another way than "
            "DistributedDataParallel does by default (a hook, other types, "
            "parameters that are not used)",
            err);
    return 0;
}

/* --- all ------------------------------------------------------------------ */

/* How far apart replicas are follows from the other groups. */
static void communicator_drop(const struct taking *t)
{
    for (size_t i = 0; i < t->r->count; i++)
        if (is_kind(t->r, i, TRACE_COMMUNICATOR) &&
            ((const struct trace_communicator *)records_fields(t->r,
                                                               &t->r->all[i]))
                    ->communicator == t->group->communicator)
            rewrite_add(t->w, &(struct edit){.kind = EDIT_DROP,
                                             .from = i,
                                             .until = i + 1});
}

static int all_take(struct taking *t, const char *to, struct err *err)
{
    const struct step_list *steps = &t->r->steps;

    for (size_t i = 0; i < steps->count; i++)
        if (step_take(t, &steps->steps[i], err))
            return -1;
    communicator_drop(t);
    return rewrite_write(t->w, to, err);
}

int averages_take(const char *average, const char *from, const char *to,
                  struct averages_report *report, struct err *err)
{
    struct gradient_group group;
    struct side side;

    *report = (struct averages_report){.ranks = 0};
    if (side_read(&side, from, err))
        return -1;
    struct rewrite w = rewrite_of(&side.records, &side.marks);
    struct taking t = {&side.records, &w, &group, report};
    int rc = gradient_group_find(&side.records, average, &group, err);
    if (!rc && group.shards)
        rc = take_refuse("its parameters, gradients or the optimizer's state "
                         "are sharded over ranks",
                         err);
    if (!rc && group.communicator)
        rc = all_take(&t, to, err);
    free(w.edits);
    side_fini(&side);
    return rc;
}
