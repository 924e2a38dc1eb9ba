/* SPDX-License-Identifier: Apache-2.0
 * An operation that is repeated waits for events of its own copy or, where it
 * waited for those of the layer before, of the copy before:
 *
 *   recorded  [ A: record e1 ][ B: wait e1, record e2 ][ C: wait e2 ]
 *   B twice   [ A: record e1 ][ B: wait e1, record e2 ][ B: wait e2,
 *               record e2 ][ C: wait e2 ]
 *
 * So only waits for the layer before get another event: the one that the same
 * operation of the own layer records. */
#include "memsim/change/rewrite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/bisect.h"
#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "common/trace/trace_write.h"

#define TRACE_BYTES_MAX (UINT64_C(1) << 40)
#define NEVER           SIZE_MAX

struct writing {
    struct rewrite *w;
    struct trace_writer writer;
    size_t *recorded; /* of waits: the record of the event that they wait for;
                         NEVER */
    int64_t moved_ns; /* what comes now is so much later */
    uint64_t last_ns;
    uint32_t last_thread;
};

void rewrite_add(struct rewrite *w, const struct edit *edit)
{
    xgrow(&w->edits, w->count, &w->capacity, sizeof *w->edits);
    w->edits[w->count++] = *edit;
}

static int compare_edits(const void *a, const void *b)
{
    const struct edit *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

/* The event that RECORD records or waits for; NULL: it is no such record. */
static uint64_t *event_of(const struct records *r, const struct record *record)
{
    uint64_t *fields = records_fields(r, record);

    switch (record->kind) {
    case TRACE_EVENT_RECORD:
        return &((struct trace_event_record *)fields)->event;
    case TRACE_STREAM_WAIT:
        return &((struct trace_stream_wait *)fields)->event;
    case TRACE_SYNC_EVENT:
        return &((struct trace_sync_event *)fields)->event;
    default:
        return NULL;
    }
}

static void find_recorded(struct writing *g)
{
    const struct records *r = g->w->records;
    struct map last = {.slots = NULL}; /* index + 1 by event */

    g->recorded = xcalloc(g->w->record_count + 1, sizeof *g->recorded);
    for (size_t i = 0; i < g->w->record_count; i++) {
        const uint64_t *event = event_of(r, &r->all[i]);
        g->recorded[i] = NEVER;
        if (!event)
            continue;
        if (r->all[i].kind == TRACE_EVENT_RECORD)
            map_put(&last, *event, (void *)(uintptr_t)(i + 1));
        else
            g->recorded[i] = (size_t)(uintptr_t)map_get(&last, *event) - 1;
    }
    map_fini(&last);
}

/* The last operation at or before RECORD; NEVER: there is none. */
static size_t op_before(const struct rewrite *w, size_t record)
{
    size_t behind = BISECT(i, w->op_count, w->ops[i] <= record);

    return behind ? behind - 1 : NEVER;
}

/* The event that is recorded SHIFT operations behind where RECORD records its
 * own (before, where BACK); 0: none is. */
static uint64_t event_shifted(const struct rewrite *w, size_t record,
                              size_t shift, bool back)
{
    const struct records *r = w->records;
    size_t op = op_before(w, record);

    if (op == NEVER || (back ? op < shift : op + shift >= w->op_count))
        return 0;
    size_t at = w->ops[back ? op - shift : op + shift] + (record - w->ops[op]);
    if (at >= w->record_count || r->all[at].kind != TRACE_EVENT_RECORD)
        return 0;
    return *event_of(r, &r->all[at]);
}

/* The event that the wait INDEX is for, where EDIT moves it; 0: its own. COPY:
 * the wait is repeated. */
static uint64_t event_for(const struct writing *g, size_t index,
                          const struct edit *edit, bool copy)
{
    size_t recorded = g->recorded[index];

    if (recorded == NEVER)
        return 0;
    if (copy) {
        size_t op = op_before(g->w, edit->from);
        size_t before =
            op == NEVER || op < edit->shift ? 0 : g->w->ops[op - edit->shift];
        if (recorded < edit->from && recorded > before)
            return event_shifted(g->w, recorded, edit->shift, false);
        return 0;
    }
    if (edit->kind == EDIT_DROP && recorded >= edit->from &&
        recorded < edit->until)
        return event_shifted(g->w, recorded, edit->shift, true);
    return 0;
}

/* Calls for memory are not made again by a copy. */
static bool is_once(enum trace_kind kind)
{
    return kind == TRACE_DEVICE_MALLOC || kind == TRACE_DEVICE_FREE ||
           kind == TRACE_NAME || kind == TRACE_MODULE;
}

static void record_put(struct writing *g, const struct record *record,
                       uint64_t event)
{
    const struct records *r = g->w->records;
    uint64_t fields[TRACE_FIELDS_MAX];
    uint64_t ns = record->time_ns + (uint64_t)g->moved_ns;
    struct record as = *record;

    memcpy(fields, records_fields(r, record), sizeof fields);
    if (record->kind == TRACE_STREAM_WAIT && event)
        ((struct trace_stream_wait *)fields)->event = event;
    else if (record->kind == TRACE_SYNC_EVENT && event)
        ((struct trace_sync_event *)fields)->event = event;
    else if (record->kind == TRACE_MEASURED)
        ((struct trace_measured *)fields)->start_ns += (uint64_t)g->moved_ns;
    if (ns < g->last_ns)
        ns = g->last_ns;
    g->last_ns = ns;
    g->last_thread = as.thread;
    trace_writer_put(&g->writer,
                     &(struct trace_put){.kind = as.kind,
                                         .thread = as.thread,
                                         .time_ns = ns,
                                         .fields = fields,
                                         .count = as.field_count,
                                         .text = records_text(r, record),
                                         .text_bytes = as.text_bytes});
}

static uint64_t time_at(const struct rewrite *w, size_t index)
{
    const struct records *r = w->records;

    if (!w->record_count)
        return 0;
    return r->all[index < w->record_count ? index : w->record_count - 1]
        .time_ns;
}

static void put_copies(struct writing *g, const struct edit *e)
{
    const struct records *r = g->w->records;
    uint64_t lasts = time_at(g->w, e->until) - time_at(g->w, e->from);

    for (size_t copy = 0; copy < e->copies; copy++) {
        g->moved_ns += (int64_t)lasts;
        for (size_t i = e->from; i < e->until; i++)
            if (!is_once(r->all[i].kind))
                record_put(g, &r->all[i], event_for(g, i, e, true));
    }
}

/* What EDIT makes of the record INDEX in it. */
static void put_edited(struct writing *g, const struct edit *e, size_t index,
                       uint64_t event)
{
    const struct records *r = g->w->records;

    if (e->kind == EDIT_REPEAT) {
        record_put(g, &r->all[index], event);
        if (index + 1 == e->until)
            put_copies(g, e);
    } else if (e->kind == EDIT_REPLACE) {
        for (size_t i = 0; index == e->from && i < e->copies; i++)
            record_put(g, &r->all[e->first + i], 0);
        g->moved_ns += index == e->from ? (int64_t)e->lasts_ns : 0;
    } else if (is_once(r->all[index].kind)) {
        record_put(g, &r->all[index], 0);
    } else if (index + 1 == e->until) {
        g->moved_ns -=
            (int64_t)(time_at(g->w, e->until) - time_at(g->w, e->from));
    }
}

/* The first edit that ends behind record INDEX. */
static size_t edit_at(const struct rewrite *w, size_t index)
{
    return BISECT(i, w->count, w->edits[i].until <= index);
}

static void put_range(struct writing *g, const struct rewrite_piece *p)
{
    const struct rewrite *w = g->w;
    size_t at = edit_at(w, p->from); /* that is under way, or comes next */

    for (size_t i = p->from; i < p->until; i++) {
        uint64_t event = 0;
        while (at < w->count && w->edits[at].until <= i)
            at++;
        /* a wait for what was dropped: the edit is one of the last few */
        for (size_t j = at; i < w->record_count && !event && j-- &&
                            at - j <= 8;)
            event = event_for(g, i, &w->edits[j], false);
        if (at < w->count && w->edits[at].from <= i)
            put_edited(g, &w->edits[at], i, event);
        else if (p->once || !is_once(w->records->all[i].kind))
            record_put(g, &w->records->all[i], event);
    }
}

int rewrite_write_pieces(struct rewrite *w, const struct rewrite_piece *pieces,
                         size_t count, const char *path, struct err *err)
{
    struct writing g = {.w = w, .writer = TRACE_WRITER_INIT};

    if (trace_writer_open(&g.writer, path, TRACE_BYTES_MAX, err))
        return -1;
    if (w->count)
        qsort(w->edits, w->count, sizeof *w->edits, compare_edits);
    find_recorded(&g);
    for (size_t i = 0; i < count; i++) {
        if (i && pieces[i].from < pieces[i].until)
            g.moved_ns = (int64_t)(g.last_ns -
                                   w->records->all[pieces[i].from].time_ns);
        put_range(&g, &pieces[i]);
    }
    bool whole = g.writer.chunk != NULL;
    if (whole)
        trace_writer_exit(&g.writer, 0, g.last_thread, g.last_ns);
    free(g.recorded);
    if (whole)
        return 0;
    unlink(path);
    return err_set(err, "%s: no room for the changed recording", path);
}

int rewrite_write(struct rewrite *w, const char *path, struct err *err)
{
    const struct rewrite_piece all = {0, w->record_count, true};

    return rewrite_write_pieces(w, &all, 1, path, err);
}
