/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/buckets.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "memsim/change/bucket_rule.h"
#include "memsim/change/side.h"

#define SMALL_ELEMENTS 1024 /* of a norm, a loss, a count of tokens */
#define GROUP_RECORDS  16
#define EVENT_STRIDE   0x200 /* between handles of new events */

/* The gradients of a backward. */
struct ready {
    uint64_t *sizes; /* elements */
    size_t *ops;     /* that make them ready: operations */
    size_t count, capacity, ops_capacity;
    size_t copies; /* operation of the first copy out of a bucket */
    size_t copied; /* how many there are */
};

/* A bucket's all-reduce: the calls around it, in order. */
struct group {
    size_t records[GROUP_RECORDS];
    size_t count;
    size_t collective; /* a record */
    uint64_t event;    /* what the backward's end waits for */
    size_t wait;       /* that wait's record */
};

/* A backward. */
struct pass {
    struct group *groups; /* none: it averages nothing */
    size_t count, capacity;
    struct bucket_rule rule;
    uint64_t each; /* bytes of an element */
};

struct buckets {
    struct side side; /* the recording */
    struct pass *passes;
    size_t count, capacity;
    uint64_t free_event; /* a handle that no event has, nor any above it */
    uint64_t mark; /* an event that is recorded behind what makes a gradient
                      ready, while the buckets are out */
};

/* --- a backward's gradients ----------------------------------------------- */

static const char *name_of(const struct records *r, const struct record *record)
{
    return trace_names_get(
        &r->names,
        (uint32_t)((struct trace_work *)records_fields(r, record))->name);
}

static bool is_parameter(const struct records *r, uint64_t elements)
{
    for (size_t i = 0; i < r->parameter_count; i++)
        if (r->parameters[i].elements == elements)
            return true;
    return false;
}

/* Reducer::mark_variable_ready_dense: bucket_view = grad / ranks. */
static bool makes_ready(const struct records *r, const struct record *record)
{
    const struct trace_launch *l =
        (const struct trace_launch *)records_fields(r, record);

    if (record->kind != TRACE_LAUNCH ||
        l->shared_bytes_rule >> 32 != TRACE_RULE_ELEMENTWISE)
        return false;
    const char *name = name_of(r, record);
    return strstr(name, "UnaryFunctor") && strstr(name, "MulFunctor") &&
           is_parameter(r, l->a);
}

/* Is MARK behind RECORD, as buckets_take leaves it? */
static bool is_marked(const struct records *r, size_t record, uint64_t mark)
{
    const struct record *next = &r->all[record + 1];

    return record + 1 < r->count && next->kind == TRACE_EVENT_RECORD &&
           ((struct trace_event_record *)records_fields(r, next))->event ==
               mark;
}

static bool is_copy(const struct records *r, const struct record *record)
{
    return record->kind == TRACE_COPY &&
           ((struct trace_copy *)records_fields(r, record))->direction ==
               TRACE_DEVICE_TO_DEVICE;
}

/* MARK: of a recording from which buckets were taken; 0: of another. */
static void ready_find(const struct side *side, const struct segment *s,
                       uint64_t mark, struct ready *g)
{
    const struct records *r = &side->records;

    *g = (struct ready){.copies = s->end};
    for (size_t op = s->first; op < s->end; op++) {
        size_t at = side->marks.ops[op];
        if (mark ? !is_marked(r, at, mark) : !makes_ready(r, &r->all[at]))
            continue;
        xgrow(&g->sizes, g->count, &g->capacity, sizeof *g->sizes);
        xgrow(&g->ops, g->count, &g->ops_capacity, sizeof *g->ops);
        g->sizes[g->count] =
            ((struct trace_launch *)records_fields(r, &r->all[at]))->a;
        g->ops[g->count++] = op;
    }
    size_t last = g->count ? g->ops[g->count - 1] + 1 : s->end;
    for (size_t op = last; op < s->end; op++)
        if (is_copy(r, &r->all[side->marks.ops[op]])) {
            g->copies = g->copied ? g->copies : op;
            g->copied++;
        }
}

static void ready_fini(struct ready *g)
{
    free(g->sizes);
    free(g->ops);
}

/* A copy for each gradient, or none at all (gradient_as_bucket_view). ORDERED:
 * in the order in which they are ready. */
static bool copies_match(const struct side *side, const struct ready *g,
                         uint64_t each, bool ordered)
{
    const struct records *r = &side->records;
    uint64_t elements = 0, bytes = 0;

    for (size_t i = 0; i < g->copied && g->copied == g->count; i++) {
        const struct record *record = &r->all[side->marks.ops[g->copies + i]];
        const struct trace_copy *copy =
            (const struct trace_copy *)records_fields(r, record);
        if (!is_copy(r, record) ||
            (ordered && copy->bytes != g->sizes[i] * each))
            return false;
        elements += g->sizes[i];
        bytes += copy->bytes;
    }
    return !g->copied || (g->copied == g->count && bytes == elements * each);
}

/* --- groups --------------------------------------------------------------- */

static const struct trace_collective *reduce_at(const struct records *r,
                                                size_t index)
{
    const struct record *record = &r->all[index];
    const struct trace_collective *c =
        (const struct trace_collective *)records_fields(r, record);

    if (record->kind != TRACE_COLLECTIVE || c->count <= SMALL_ELEMENTS ||
        strcmp(name_of(r, record), "ncclAllReduce"))
        return NULL;
    return c;
}

static bool is_event_call(enum trace_kind kind)
{
    return kind == TRACE_EVENT_RECORD || kind == TRACE_STREAM_WAIT ||
           kind == TRACE_EVENT_CREATE;
}

static void group_add(struct group *group, size_t record)
{
    if (group->count < GROUP_RECORDS)
        group->records[group->count++] = record;
}

/* The calls between operation OP - 1 and OP, a collective, and those behind it
 * that are its own: events of its stream, and the end of an earlier one's. */
static void group_make(const struct side *side, size_t op, struct group *group)
{
    const struct records *r = &side->records;
    size_t at = side->marks.ops[op];
    const struct trace_collective *c =
        (const struct trace_collective *)records_fields(r, &r->all[at]);

    *group = (struct group){.collective = at};
    for (size_t i = op ? side->marks.ops[op - 1] + 1 : 0; i < at; i++)
        if (is_event_call(r->all[i].kind))
            group_add(group, i);
    group_add(group, at);
    for (size_t i = at + 1; i < r->count; i++) {
        const struct trace_event_record *e =
            (const struct trace_event_record *)records_fields(r, &r->all[i]);
        if (r->all[i].kind == TRACE_EVENT_RECORD && e->stream == c->stream)
            group->event = e->event;
        else if (r->all[i].kind != TRACE_EVENT_CREATE &&
                 r->all[i].kind != TRACE_EVENT_DESTROY)
            break;
        group_add(group, i);
    }
}

/* The wait for each group's event, behind the last of them. */
static bool waits_find(const struct side *side, const struct segment *s,
                       struct pass *pass)
{
    const struct records *r = &side->records;
    size_t last = pass->groups[pass->count - 1].collective;
    size_t found = 0;

    for (size_t i = last; i < s->until && found < pass->count; i++) {
        const struct trace_stream_wait *w =
            (const struct trace_stream_wait *)records_fields(r, &r->all[i]);
        if (r->all[i].kind == TRACE_STREAM_WAIT &&
            w->event == pass->groups[found].event)
            pass->groups[found++].wait = i;
    }
    return found == pass->count;
}

static void groups_find(struct buckets *b, const struct segment *s,
                        struct pass *pass)
{
    const struct side *side = &b->side;

    *pass = (struct pass){.count = 0};
    for (size_t op = s->first; op < s->end; op++) {
        const struct trace_collective *c =
            reduce_at(&side->records, side->marks.ops[op]);
        if (!c)
            continue;
        xgrow(&pass->groups, pass->count, &pass->capacity,
              sizeof *pass->groups);
        group_make(side, op, &pass->groups[pass->count++]);
        pass->each = c->bytes / c->count;
    }
}

/* --- the rule ------------------------------------------------------------- */

/* Where the recorded buckets end, in gradients; each comes right behind its
 * last one. False: they are no such buckets. */
static bool ends_find(const struct side *side, const struct pass *pass,
                      const struct ready *g, size_t *ends)
{
    const struct records *r = &side->records;
    size_t at = 0;

    for (size_t i = 0; i < pass->count; i++) {
        const struct trace_collective *c =
            reduce_at(r, pass->groups[i].collective);
        uint64_t elements = 0;
        while (at < g->count && elements < c->count)
            elements += g->sizes[at++];
        if (elements != c->count || c->bytes != c->count * pass->each ||
            pass->groups[i].count == GROUP_RECORDS ||
            g->ops[at - 1] + 1 >= side->marks.count ||
            side->marks.ops[g->ops[at - 1] + 1] != pass->groups[i].collective)
            return false;
        ends[i] = at;
    }
    return at == g->count;
}

/* Before DDP has seen in which order gradients come, all are one bucket. */
static bool rule_find(struct buckets *b, const struct segment *s,
                      struct pass *pass, bool is_first)
{
    struct ready g;
    size_t *ends = xcalloc(pass->count + 1, sizeof *ends);

    ready_find(&b->side, s, 0, &g);
    const struct bucket_gradients gradients = {g.sizes, g.count, pass->each};
    bool whole = is_first && pass->count == 1;
    bool known = ends_find(&b->side, pass, &g, ends) &&
                 copies_match(&b->side, &g, pass->each, !whole) &&
                 waits_find(&b->side, s, pass);
    if (known && whole)
        pass->rule = (struct bucket_rule){UINT64_MAX, UINT64_MAX};
    else
        known = known &&
                bucket_rule_find(&pass->rule, &gradients, ends, pass->count);
    ready_fini(&g);
    free(ends);
    return known;
}

/* Finds the buckets of every backward. False: there are none, or all-reduces
 * that are no buckets, such as those of tensor parallelism; whether the rest
 * can be changed with them is for others to say. */
static bool passes_find(struct buckets *b)
{
    bool found = false;

    for (size_t i = 0; i < b->side.marks.segment_count; i++) {
        const struct segment *s = &b->side.marks.segments[i];
        if (s->kind != SEGMENT_BACKWARD)
            continue;
        xgrow(&b->passes, b->count, &b->capacity, sizeof *b->passes);
        struct pass *pass = &b->passes[b->count++];
        groups_find(b, s, pass);
        if (pass->count && !rule_find(b, s, pass, !found))
            return false;
        found = found || pass->count;
    }
    return found;
}

/* --- taking them out ------------------------------------------------------ */

static void record_drop(struct rewrite *w, size_t record)
{
    rewrite_add(w, &(struct edit){EDIT_DROP, record, record + 1, 0, 0, 0, 0});
}

/* The first wait stays: it is the place of the others where there are no
 * copies. */
static void pass_drop(struct rewrite *w, const struct pass *pass)
{
    for (size_t i = 0; i < pass->count; i++) {
        const struct group *group = &pass->groups[i];
        for (size_t k = 0; k < group->count; k++)
            record_drop(w, group->records[k]);
        if (i)
            record_drop(w, group->wait);
    }
}

/* Record INDEX of SIDE again, at TIME_NS. */
static size_t add_again(struct side *side, size_t index, uint64_t time_ns)
{
    struct records *r = &side->records;
    struct record like = r->all[index];
    uint64_t fields[TRACE_FIELDS_MAX];
    char *text = xmalloc(like.text_bytes + 1u);

    memcpy(fields, records_fields(r, &like), sizeof fields);
    memcpy(text, records_text(r, &like), like.text_bytes);
    like.time_ns = time_ns;
    size_t added = records_add(r, &like, fields, text);
    free(text);
    return added;
}

/* Puts the mark behind operation OP. */
static void mark_put(struct buckets *b, struct rewrite *w, size_t op)
{
    struct records *r = &b->side.records;
    size_t at = b->side.marks.ops[op];
    struct edit edit = {EDIT_REPLACE, at, at + 1, 2, 0, 0, 0};
    struct record like = r->all[at];
    struct trace_work work = *(struct trace_work *)records_fields(r, &like);
    uint64_t fields[TRACE_FIELDS_MAX] = {0};

    *(struct trace_event_record *)fields = (struct trace_event_record){
        .device = work.device, .stream = work.stream, .event = b->mark};
    like.kind = TRACE_EVENT_RECORD;
    like.field_count = TRACE_WORD_COUNT(EVENT_RECORD);
    like.text_bytes = 0;
    edit.first = add_again(&b->side, at, like.time_ns);
    records_add(r, &like, fields, "");
    rewrite_add(w, &edit);
}

static void mark_ready(struct buckets *b, struct rewrite *w,
                       const struct segment *s)
{
    struct ready g;

    ready_find(&b->side, s, 0, &g);
    for (size_t i = 0; i < g.count; i++)
        mark_put(b, w, g.ops[i]);
    ready_fini(&g);
}

static void find_free_event(struct buckets *b)
{
    const struct records *r = &b->side.records;

    for (size_t i = 0; i < r->count; i++) {
        const struct trace_event_create *e =
            (const struct trace_event_create *)records_fields(r, &r->all[i]);
        if (r->all[i].kind == TRACE_EVENT_CREATE && e->event >= b->free_event)
            b->free_event = e->event + EVENT_STRIDE;
    }
    b->mark = b->free_event;
    b->free_event += EVENT_STRIDE;
}

static void out_all(struct buckets *b, struct rewrite *w)
{
    size_t at = 0;

    for (size_t i = 0; i < b->side.marks.segment_count; i++) {
        const struct segment *s = &b->side.marks.segments[i];
        if (s->kind != SEGMENT_BACKWARD)
            continue;
        const struct pass *pass = &b->passes[at++];
        if (!pass->count)
            continue;
        pass_drop(w, pass);
        mark_ready(b, w, s);
    }
}

int buckets_take(const char *from, const char *to, struct buckets **buckets,
                 struct err *err)
{
    struct buckets *b = xcalloc(1, sizeof *b);

    *buckets = NULL;
    if (side_read(&b->side, from, err)) {
        free(b);
        return -1;
    }
    if (b->side.records.imported || !passes_find(b)) {
        buckets_destroy(b);
        return 0;
    }
    find_free_event(b);
    struct rewrite w = rewrite_of(&b->side.records, &b->side.marks);
    out_all(b, &w);
    int rc = rewrite_write(&w, to, err);
    free(w.edits);
    if (rc)
        buckets_destroy(b);
    else
        *buckets = b;
    return rc;
}

void buckets_destroy(struct buckets *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->count; i++)
        free(b->passes[i].groups);
    free(b->passes);
    side_fini(&b->side);
    free(b);
}

/* --- putting them in ------------------------------------------------------ */

/* Of one backward of the changed recording. */
struct putting {
    const struct buckets *b;
    const struct pass *pass;
    struct side *to;
    struct rewrite *rewrite;
    struct ready ready;
    size_t *ends;
    size_t count; /* buckets */
};

/* Bucket INDEX is written as the recorded one of that number or, behind the
 * recorded ones, as the last of them. */
static const struct group *group_of(const struct putting *p, size_t index)
{
    size_t last = p->pass->count - 1;

    return &p->pass->groups[index < last ? index : last];
}

/* The handle of EVENT in bucket INDEX: a new one, where the bucket is. */
static uint64_t event_of(const struct putting *p, size_t index, uint64_t event)
{
    if (index < p->pass->count)
        return event;
    bool awaited = event == group_of(p, index)->event;
    return p->b->free_event +
           (2 * (index - p->pass->count) + awaited) * EVENT_STRIDE;
}

static uint64_t bucket_elements(const struct putting *p, size_t index)
{
    uint64_t sum = 0;

    for (size_t i = index ? p->ends[index - 1] : 0; i < p->ends[index]; i++)
        sum += p->ready.sizes[i];
    return sum;
}

/* The time from record INDEX of the recording to the next. */
static uint64_t lasts_ns(const struct buckets *b, size_t index)
{
    const struct records *r = &b->side.records;

    return index + 1 < r->count
               ? r->all[index + 1].time_ns - r->all[index].time_ns
               : 0;
}

/* Adds the record FROM of the recording, of bucket INDEX, at TIME_NS. */
static size_t add_record(struct putting *p, size_t from, size_t index,
                         uint64_t time_ns)
{
    const struct records *r = &p->b->side.records;
    struct record like = r->all[from];
    uint64_t fields[TRACE_FIELDS_MAX];

    memcpy(fields, records_fields(r, &like), sizeof fields);
    like.time_ns = time_ns;
    switch (like.kind) {
    case TRACE_EVENT_RECORD:
    case TRACE_STREAM_WAIT:;
        struct trace_event_record *e = (struct trace_event_record *)fields;
        e->event = event_of(p, index, e->event);
        break;
    case TRACE_EVENT_CREATE:
    case TRACE_EVENT_DESTROY:;
        struct trace_event_create *c = (struct trace_event_create *)fields;
        c->event = event_of(p, index, c->event);
        break;
    case TRACE_COLLECTIVE:;
        struct trace_collective *reduce = (struct trace_collective *)fields;
        reduce->count = bucket_elements(p, index);
        reduce->bytes = reduce->count * p->pass->each;
        break;
    default:
        break;
    }
    return records_add(&p->to->records, &like, fields, "");
}

/* Behind the operation that makes bucket INDEX's last gradient ready. */
static void put_group(struct putting *p, size_t index)
{
    const struct group *group = group_of(p, index);
    size_t op = p->ready.ops[p->ends[index] - 1];
    size_t at = p->to->marks.ops[op];
    uint64_t began = p->to->records.all[at].time_ns, ns = began;
    struct edit edit = {EDIT_REPLACE, at, at + 1, 1 + group->count, 0, 0, 0};

    edit.first = add_again(p->to, at, began);
    for (size_t i = 0; i < group->count; i++) {
        add_record(p, group->records[i], index, ns);
        ns += lasts_ns(p->b, group->records[i]);
    }
    edit.lasts_ns = ns - began;
    rewrite_add(p->rewrite, &edit);
}

/* The first bucket's wait; 0: it is not there. */
static size_t first_wait(const struct putting *p, const struct segment *s)
{
    const struct records *r = &p->to->records;
    size_t last = p->to->marks.ops[p->ready.ops[p->ready.count - 1]];

    for (size_t i = last; i < s->until; i++)
        if (r->all[i].kind == TRACE_STREAM_WAIT &&
            ((struct trace_stream_wait *)records_fields(r, &r->all[i]))
                    ->event == p->pass->groups[0].event)
            return i;
    return 0;
}

/* Before its first copy. */
static void put_wait(struct putting *p, size_t index)
{
    size_t from = group_of(p, index)->wait;
    size_t at = p->to->marks.ops[p->ready.copies + p->ends[index - 1]];
    uint64_t began = p->to->records.all[at].time_ns;
    struct edit edit = {EDIT_REPLACE, at, at + 1, 2, 0, 0, 0};

    edit.lasts_ns = lasts_ns(p->b, from);
    edit.first = add_record(p, from, index, began);
    add_again(p->to, at, began + edit.lasts_ns);
    rewrite_add(p->rewrite, &edit);
}

/* Without copies all waits come together. */
static void put_waits(struct putting *p, size_t at)
{
    uint64_t began = p->to->records.all[at].time_ns, ns = began;
    struct edit edit = {EDIT_REPLACE, at, at + 1, p->count, 0, 0, 0};

    edit.first = add_again(p->to, at, began);
    for (size_t i = 1; i < p->count; i++) {
        ns += lasts_ns(p->b, group_of(p, i)->wait);
        add_record(p, group_of(p, i)->wait, i, ns);
    }
    edit.lasts_ns = ns - began;
    rewrite_add(p->rewrite, &edit);
}

static int put_pass(struct putting *p, const struct segment *s, struct err *err)
{
    size_t wait = p->ready.count ? first_wait(p, s) : 0;
    const struct bucket_gradients g = {p->ready.sizes, p->ready.count,
                                       p->pass->each};

    bool whole = p->pass->rule.first == UINT64_MAX;
    if (!wait || !copies_match(p->to, &p->ready, p->pass->each, !whole))
        return err_set(err,
                       "--change: step %" PRIu32 ": DDP's gradients are not "
                       "those that it copies out of its buckets. `memsim run' "
                       "of the changed script needs no GPU",
                       s->step);
    for (size_t i = 0; i < g.count; i++) {
        size_t mark = p->to->marks.ops[p->ready.ops[i]] + 1;
        rewrite_add(p->rewrite,
                    &(struct edit){EDIT_REPLACE, mark, mark + 1, 0, 0, 0, 0});
    }
    p->ends = xcalloc(g.count + 1, sizeof *p->ends);
    p->count = bucket_cut(&p->pass->rule, &g, p->ends);
    for (size_t i = 0; i < p->count; i++)
        put_group(p, i);
    for (size_t i = 1; p->ready.copied && i < p->count; i++)
        put_wait(p, i);
    if (!p->ready.copied)
        put_waits(p, wait);
    free(p->ends);
    return 0;
}

static int put_all(const struct buckets *b, struct side *side,
                   struct rewrite *w, struct err *err)
{
    size_t at = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < side->marks.segment_count; i++) {
        const struct segment *s = &side->marks.segments[i];
        if (s->kind != SEGMENT_BACKWARD)
            continue;
        if (at == b->count)
            break;
        struct putting p = {
            .b = b, .pass = &b->passes[at++], .to = side, .rewrite = w};
        if (!p.pass->count)
            continue;
        ready_find(side, s, b->mark, &p.ready);
        rc = put_pass(&p, s, err);
        ready_fini(&p.ready);
    }
    return rc;
}

int buckets_put(const struct buckets *b, const char *from, const char *to,
                struct err *err)
{
    struct side side;

    if (side_read(&side, from, err))
        return -1;
    struct rewrite w = rewrite_of(&side.records, &side.marks);
    int rc = put_all(b, &side, &w, err) || rewrite_write(&w, to, err) ? -1 : 0;
    free(w.edits);
    side_fini(&side);
    return rc;
}
