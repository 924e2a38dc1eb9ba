/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/sizes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/list_launches.h"
#include "memsim/change/side.h"
#include "memsim/change/size_op.h"
#include "memsim/change/size_time.h"

#define SMALL_ELEMENTS 1024 /* of a norm, a loss, a count of tokens */
#define CHUNK_ELEMENTS 65536
#define ELEMENTS_MAX   (UINT64_C(1) << 38)

/* Operations of one step in both recordings. */
struct stretch {
    uint32_t step;
    size_t first, end; /* of the first recording */
    size_t second_first, second_end;
};

struct work {
    const struct sizes_change *change;
    struct sizes_report *report;
    struct side a, b;
    struct size_points points;            /* with what the parameters say */
    uint64_t *elements, *beside, *wanted; /* of parameters: in the first, the
                                             second and the changed */
    struct size_sums sums;
    struct size_times times;
    struct size_doubts doubts;
    struct rewrite rewrite;
    size_t before;     /* a record that is to come before the next operation's;
                          0: none */
    struct size_op op; /* large: not on the stack */
};

static const char *name_of(const struct side *side, size_t op)
{
    const struct records *r = &side->records;
    const struct record *record = &r->all[side->marks.ops[op]];
    const struct trace_kind_info *kind = trace_kind_find(record->kind);

    if (record->kind == TRACE_COPY || record->kind == TRACE_SET)
        return kind->name;
    return trace_names_get(
        &r->names, ((struct trace_work *)records_fields(r, record))->name);
}

static const struct record *record_of(const struct side *side, size_t op)
{
    return &side->records.all[side->marks.ops[op]];
}

/* --- parameters ----------------------------------------------------------- */

static uint64_t chunks_of(uint64_t elements)
{
    return (elements + CHUNK_ELEMENTS - 1) / CHUNK_ELEMENTS;
}

static void keep_most(uint64_t *most, uint64_t value)
{
    if (value > *most)
        *most = value;
}

/* The elements of parameter I where the size is the wanted one; ALL adds. */
static int make_parameter(struct work *w, size_t i, uint64_t *all,
                          struct err *err)
{
    uint64_t first = w->a.records.parameters[i].elements;
    uint64_t second = w->b.records.parameters[i].elements;
    struct size_points *p = &w->points;

    if (size_law_number(p, first, second, &w->wanted[i]) == SIZE_NONE)
        return err_set(err,
                       "--change: a parameter of %" PRIu64 " and %" PRIu64
                       " elements has no whole number of them where %s is "
                       "%" PRIu64,
                       first, second, w->change->what, p->wanted);
    w->elements[i] = first;
    w->beside[i] = second;
    *all += w->wanted[i];
    if (w->wanted[i] > ELEMENTS_MAX || *all > ELEMENTS_MAX)
        return err_set(err,
                       "--change: where %s is %" PRIu64 ", the model has more "
                       "than %" PRIu64 " parameters",
                       w->change->what, p->wanted, ELEMENTS_MAX);
    keep_most(&p->chunks[0], chunks_of(first));
    keep_most(&p->chunks[1], chunks_of(second));
    keep_most(&p->chunks[2], chunks_of(w->wanted[i]));
    return 0;
}

/* Of any collective. */
static uint64_t most_ranks(const struct records *r)
{
    uint64_t ranks = 1;

    for (size_t i = 0; i < r->count; i++)
        if (r->all[i].kind == TRACE_COLLECTIVE)
            keep_most(&ranks,
                      ((struct trace_collective *)records_fields(r, &r->all[i]))
                          ->ranks);
    return ranks;
}

static int make_parameters(struct work *w, struct err *err)
{
    size_t count = w->a.records.parameter_count;
    uint64_t all = 0;

    if (count != w->b.records.parameter_count)
        return err_set(err,
                       "--change: the recordings are not of one script: %zu "
                       "parameters in the first, %zu in the second",
                       count, w->b.records.parameter_count);
    w->elements = xcalloc(count + 1, sizeof *w->elements);
    w->beside = xcalloc(count + 1, sizeof *w->beside);
    w->wanted = xcalloc(count + 1, sizeof *w->wanted);
    for (size_t i = 0; i < count; i++)
        if (make_parameter(w, i, &all, err))
            return -1;
    w->points.tensors = count;
    w->sums = (struct size_sums){.first = w->elements,
                                 .second = w->beside,
                                 .wanted = w->wanted,
                                 .count = count,
                                 .ranks = most_ranks(&w->a.records)};
    w->points.sums = &w->sums;
    return 0;
}

/* --- lists of tensors ----------------------------------------------------- */

/* Parameters as sizes in the first, the second and the changed recording: of a
 * rank's shards where they are sharded. */
struct lists {
    uint64_t *first, *second, *wanted;
    size_t count;
    uint64_t shards;
};

static uint64_t shard_of(const struct lists *l, uint64_t elements)
{
    return (elements + l->shards - 1) / l->shards;
}

/* Those of LEAST to MOST elements in the first recording. */
static void lists_take(struct lists *l, const struct work *w, uint64_t least,
                       uint64_t most)
{
    l->count = 0;
    for (size_t i = 0; i < w->a.records.parameter_count; i++) {
        uint64_t elements = w->a.records.parameters[i].elements;
        if (elements < least || elements > most)
            continue;
        l->first[l->count] = shard_of(l, elements);
        l->second[l->count] = shard_of(l, w->b.records.parameters[i].elements);
        l->wanted[l->count++] = shard_of(l, w->wanted[i]);
    }
}

static bool lists_match(const struct work *w, const struct stretch *s, size_t i,
                        size_t j, const struct lists *l, unsigned variant,
                        size_t counts[2])
{
    const struct list_place a = {&w->a.records, w->a.marks.ops, s->end};
    const struct list_place b = {&w->b.records, w->b.marks.ops, s->second_end};

    counts[0] = list_launches_find(&a, i, l->first, l->count, variant);
    counts[1] =
        counts[0] ? list_launches_find(&b, j, l->second, l->count, variant) : 0;
    return counts[1] > 0;
}

/* Replaces the launches from I on by those for the wanted sizes. *COUNTS are
 * the launches in both recordings. */
static bool try_lists(struct work *w, const struct stretch *s, size_t i,
                      size_t j, const struct lists *l, size_t counts[2])
{
    for (unsigned variant = 0; l->count && variant < LIST_VARIANTS; variant++) {
        if (!lists_match(w, s, i, j, l, variant, counts))
            continue;
        if (!memcmp(l->first, l->wanted, l->count * sizeof *l->first)) {
            w->report->same += counts[0];
            return true;
        }
        list_launches_replace(&w->rewrite, i, counts[0], l->wanted, l->count,
                              variant);
        w->report->powers += counts[0];
        return true;
    }
    return false;
}

/* All parameters; else those above or below some size. */
static bool try_limits(struct work *w, const struct stretch *s, size_t i,
                       size_t j, struct lists *l, size_t counts[2])
{
    lists_take(l, w, 0, UINT64_MAX);
    bool found = try_lists(w, s, i, j, l, counts);
    for (size_t k = 0; !found && k < w->a.records.parameter_count; k++) {
        uint64_t elements = w->a.records.parameters[k].elements;
        lists_take(l, w, elements, UINT64_MAX);
        found = try_lists(w, s, i, j, l, counts);
        if (found)
            break;
        lists_take(l, w, 0, elements);
        found = try_lists(w, s, i, j, l, counts);
    }
    return found;
}

/* Of whole parameters, or of shards. */
static bool change_list(struct work *w, const struct stretch *s, size_t i,
                        size_t j, size_t counts[2])
{
    size_t count = w->a.records.parameter_count;
    struct lists l = {xcalloc(count + 1, sizeof *l.first),
                      xcalloc(count + 1, sizeof *l.second),
                      xcalloc(count + 1, sizeof *l.wanted), 0, 1};

    bool found = try_limits(w, s, i, j, &l, counts);
    l.shards = w->sums.ranks;
    if (!found && l.shards > 1)
        found = try_limits(w, s, i, j, &l, counts);
    free(l.first);
    free(l.second);
    free(l.wanted);
    return found;
}

static bool is_list(const struct side *side, size_t op)
{
    const struct list_place place = {&side->records, side->marks.ops,
                                     side->marks.count};

    return list_launch_is(list_launch_at(&place, op));
}

/* --- one operation -------------------------------------------------------- */

static void count_op(struct sizes_report *report, const struct size_op *op)
{
    if (op->law == SIZE_SAME)
        report->same++;
    else if (op->law <= SIZE_SUM)
        report->powers++;
    else
        report->lines++;
    report->others += op->other;
    report->rounded += op->rounded;
}

static int refuse_number(const struct work *w, size_t i, struct err *err)
{
    const struct size_points *p = &w->points;

    return err_set(err,
                   "--change: %.80s: a number that is %" PRIu64 " and %" PRIu64
                   " where %s is %" PRIu64 " and %" PRIu64 " %s %" PRIu64
                   ". `memsim run' of the changed script needs no GPU",
                   name_of(&w->a, i), w->op.bad[0], w->op.bad[1],
                   w->change->what, p->first, p->second,
                   w->op.law == SIZE_UNEVEN
                       ? "is no multiple of 8, 4 or 2 any more (PyTorch would "
                         "choose other kernels) for"
                       : "gives no whole one by a power or on a line for",
                   p->wanted);
}

/* The elements of several parameters together, as in DDP's buckets, in FSDP's
 * units and in lists, are on no line. */
static bool is_mixed(const struct work *w, size_t i)
{
    const struct record *first = record_of(&w->a, i);
    const struct trace_collective *c =
        (const struct trace_collective *)records_fields(&w->a.records, first);

    if (w->op.law != SIZE_LINE)
        return false;
    return is_list(&w->a, i) ||
           (first->kind == TRACE_COLLECTIVE && c->count > SMALL_ELEMENTS);
}

/* DDP fills a bucket until it has some size. The same parameters are in it at
 * both sizes, so that they are between them. */
static bool is_bucket_beyond(const struct work *w, size_t i)
{
    return w->op.law == SIZE_SUM &&
           record_of(&w->a, i)->kind == TRACE_COLLECTIVE &&
           !strcmp(name_of(&w->a, i), "ncclAllReduce") &&
           !size_is_between(&w->points);
}

static int write_op(struct work *w, size_t i, struct err *err)
{
    struct records *r = &w->a.records;
    size_t at = w->a.marks.ops[i];
    struct edit edit = {EDIT_REPLACE, at, at + 1, 1, 0, 0, 0};
    struct record like = r->all[at];

    if (is_mixed(w, i))
        return err_set(err,
                       "--change: %.80s works on parameters of several sizes: "
                       "their sum follows no power of %s. `memsim run' of the "
                       "changed script needs no GPU",
                       name_of(&w->a, i), w->change->what);
    if (is_bucket_beyond(w, i))
        return err_set(err,
                       "--change: gradients are averaged in buckets of a rule "
                       "that is not known, and "
                       "%s %" PRIu64 " is not between the two recordings': "
                       "buckets could have other parameters there",
                       w->change->what, w->points.wanted);
    if (w->op.law == SIZE_SAME && !w->before)
        return 0;
    like.text_bytes = (uint32_t)w->op.text_bytes;
    edit.first = records_add(r, &like, w->op.fields, w->op.text);
    if (w->before) {
        edit.first = w->before;
        edit.copies = 2;
        w->before = 0;
    }
    rewrite_add(&w->rewrite, &edit);
    return 0;
}

static int change_op(struct work *w, const struct stretch *s, size_t i,
                     size_t j, struct err *err)
{
    const struct record *first = record_of(&w->a, i);
    const struct record *second = record_of(&w->b, j);

    if (first->kind != second->kind)
        return err_set(err,
                       "--change: step %" PRIu32 " differs: after %zu equal "
                       "operations comes %.60s, in the second recording "
                       "%.60s. The two must be of one script that differs in "
                       "%s alone",
                       s->step, i - s->first, name_of(&w->a, i),
                       name_of(&w->b, j), w->change->what);
    size_op_make(&w->op, &w->points, &w->a.records, first, &w->b.records,
                 second);
    if (w->op.law >= SIZE_UNEVEN && !w->a.records.imported)
        return refuse_number(w, i, err);
    count_op(w->report, &w->op);
    size_times_change(&w->times, i, j, (size_t[]){1, 1}, &w->op);
    return write_op(w, i, err);
}

/* --- sets ----------------------------------------------------------------- */

/* Is operation OP of ONE a set, before what is operation BESIDE of OTHER?
 * PyTorch clears the counters of a reduction that takes several blocks for a
 * result (aten/src/ATen/native/cuda/Reduce.cuh), which depends on the size. */
static bool is_set_alone(const struct side *one, size_t op, size_t end,
                         const struct side *other, size_t beside)
{
    return record_of(one, op)->kind == TRACE_SET && op + 1 < end &&
           record_of(other, beside)->kind == TRACE_LAUNCH &&
           record_of(one, op + 1)->kind == TRACE_LAUNCH &&
           !strcmp(name_of(one, op + 1), name_of(other, beside));
}

/* A set of the first recording alone: the nearer recording decides. */
static void set_drop(struct work *w, size_t i)
{
    size_t at = w->a.marks.ops[i];

    w->report->others++;
    if (size_second_is_nearer(&w->points))
        rewrite_add(&w->rewrite,
                    &(struct edit){EDIT_REPLACE, at, at + 1, 0, 0, 0, 0});
}

/* A set of the second alone, before operation I of the first. */
static void set_add(struct work *w, size_t i, size_t j)
{
    struct record like = *record_of(&w->b, j);
    const struct record *next = record_of(&w->a, i);
    uint64_t fields[TRACE_FIELDS_MAX];
    struct trace_set *set = (struct trace_set *)fields;

    w->report->others++;
    if (!size_second_is_nearer(&w->points))
        return;
    memcpy(fields, records_fields(&w->b.records, &like), sizeof fields);
    set->stream =
        ((struct trace_work *)records_fields(&w->a.records, next))->stream;
    like.time_ns = next->time_ns;
    like.thread = next->thread;
    w->before = records_add(&w->a.records, &like, fields, "");
}

/* --- steps ---------------------------------------------------------------- */

/* How many launches from OP to END are those of OP's foreach kernel; 0: it is
 * none. A profile does not say which of them are one list. */
static size_t foreach_run(const struct side *side, size_t op, size_t end)
{
    const char *name = name_of(side, op);
    size_t count = 0;

    while (strstr(name, "multi_tensor_apply") && op + count < end &&
           !strcmp(name_of(side, op + count), name))
        count++;
    return count;
}

/* Lists of a profile, of which there may be more at another size. */
static bool change_foreach(struct work *w, const struct stretch *s, size_t i,
                           size_t j, size_t counts[2])
{
    if (!w->a.records.imported || strcmp(name_of(&w->a, i), name_of(&w->b, j)))
        return false;
    counts[0] = foreach_run(&w->a, i, s->end);
    counts[1] = foreach_run(&w->b, j, s->second_end);
    if (!counts[0])
        return false;
    size_times_change(&w->times, i, j, counts, NULL);
    w->report->powers += counts[0];
    return true;
}

static int change_stretch(struct work *w, const struct stretch *s,
                          struct err *err)
{
    size_t i = s->first, j = s->second_first;

    while (i < s->end && j < s->second_end) {
        size_t counts[2];
        if (is_set_alone(&w->a, i, s->end, &w->b, j)) {
            set_drop(w, i++);
            continue;
        }
        if (is_set_alone(&w->b, j, s->second_end, &w->a, i)) {
            set_add(w, i, j++);
            continue;
        }
        bool lists = (is_list(&w->a, i) && is_list(&w->b, j) &&
                      change_list(w, s, i, j, counts)) ||
                     change_foreach(w, s, i, j, counts);
        if (!lists) {
            counts[0] = counts[1] = 1;
            if (change_op(w, s, i, j, err))
                return -1;
        }
        i += counts[0];
        j += counts[1];
    }
    if (i == s->end && j == s->second_end)
        return 0;
    return err_set(err,
                   "--change: step %" PRIu32 " has %zu operations, and %zu in "
                   "the second recording. The two must be of one script that "
                   "differs in %s alone",
                   s->step, s->end - s->first, s->second_end - s->second_first,
                   w->change->what);
}

/* The operations of step INDEX. */
static void step_ops(const struct side *side, uint32_t index, size_t *first,
                     size_t *end)
{
    *first = *end = 0;
    for (size_t i = 0; i < side->marks.segment_count; i++) {
        const struct segment *s = &side->marks.segments[i];
        if (s->step != index)
            continue;
        if (!*end)
            *first = s->first;
        *end = s->end;
    }
}

/* Operations that were called before a profile began have no call there. The
 * first step has them. */
static void skip_uncalled(const struct side *side, size_t *first, size_t end)
{
    while (*first < end && size_time_is_uncalled(side, *first))
        ++*first;
}

/* A warm-up step that differs is kept: libraries do other things in it. */
static int change_step(struct work *w, uint32_t index, struct err *err)
{
    struct stretch s = {.step = index};
    struct sizes_report before = *w->report;
    size_t edits = w->rewrite.count;

    step_ops(&w->a, index, &s.first, &s.end);
    step_ops(&w->b, index, &s.second_first, &s.second_end);
    if (!index) {
        skip_uncalled(&w->a, &s.first, s.end);
        skip_uncalled(&w->b, &s.second_first, s.second_end);
    }
    if (!change_stretch(w, &s, err)) {
        w->report->steps++;
        return 0;
    }
    if (!w->a.records.steps.steps[index].warm_up)
        return -1;
    *w->report = before;
    w->report->steps_kept++;
    w->rewrite.count = edits;
    w->before = 0;
    return 0;
}

/* The tokens of a batch, which make the throughput. */
static void change_batches(struct work *w)
{
    struct records *a = &w->a.records, *b = &w->b.records;
    size_t j = 0, count = w->rewrite.record_count;

    for (size_t i = 0; i < count; i++) {
        struct edit edit = {EDIT_REPLACE, i, i + 1, 1, 0, 0, 0};
        if (a->all[i].kind != TRACE_BATCH)
            continue;
        while (j < b->count && b->all[j].kind != TRACE_BATCH)
            j++;
        if (j == b->count)
            return;
        size_op_make(&w->op, &w->points, a, &a->all[i], b, &b->all[j]);
        j++;
        if (w->op.law == SIZE_SAME || w->op.law == SIZE_NONE)
            continue;
        struct record like = a->all[i];
        edit.first = records_add(a, &like, w->op.fields, "");
        rewrite_add(&w->rewrite, &edit);
    }
}

static bool has_graphs(const struct records *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->all[i].kind == TRACE_GRAPH_LAUNCH)
            return true;
    return false;
}

static int change_all(struct work *w, struct err *err)
{
    const struct step_list *a = &w->a.records.steps, *b = &w->b.records.steps;

    if (w->a.records.imported != w->b.records.imported)
        return err_set(err, "--change: one of the recordings is a profile, the "
                            "other is memsim's own");
    if (has_graphs(&w->a.records))
        return err_set(err,
                       "--change: %s cannot be changed in CUDA graphs: their "
                       "operations were recorded where they were captured",
                       w->change->what);
    if (!a->count || a->count != b->count)
        return err_set(err,
                       "--change: the recordings have %zu and %zu steps; the "
                       "same number is needed",
                       a->count, b->count);
    if (make_parameters(w, err))
        return -1;
    for (uint32_t i = 0; i < a->count; i++)
        if (change_step(w, i, err))
            return -1;
    change_batches(w);
    if (size_times_settle(&w->times, err))
        return -1;
    if (w->report->powers || w->report->lines || w->report->times ||
        w->report->modelled)
        return 0;
    return err_set(err,
                   "--change: no operation of a step follows from %s: are the "
                   "recordings of %" PRIu64 " and %" PRIu64 "?",
                   w->change->what, w->points.first, w->points.second);
}

int sizes_change(const struct sizes_change *change, const char *first,
                 const char *second, const char *to,
                 struct sizes_report *report, struct err *err)
{
    struct work *w = xcalloc(1, sizeof *w);
    int rc = -1;

    *report = (struct sizes_report){.steps = 0};
    w->change = change;
    w->points = change->points;
    w->report = report;
    w->times = (struct size_times){&w->doubts, change, &w->points,
                                   &w->a,      &w->b,  report};
    if (side_read(&w->a, first, err))
        goto free_work;
    if (side_read(&w->b, second, err))
        goto free_first;
    w->rewrite = rewrite_of(&w->a.records, &w->a.marks);
    rc = change_all(w, err) || rewrite_write(&w->rewrite, to, err) ? -1 : 0;
    free(w->elements);
    free(w->beside);
    free(w->wanted);
    free(w->rewrite.edits);
    size_doubts_fini(&w->doubts);
    side_fini(&w->b);
free_first:
    side_fini(&w->a);
free_work:
    free(w);
    return rc;
}
