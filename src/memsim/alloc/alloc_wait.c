/* SPDX-License-Identifier: Apache-2.0
 * PyTorch keeps the queues in a hash map by stream and so visits them in hash
 * order; here they are in the order in which they came about. Within a stream
 * the order is the same. */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/alloc/alloc_shelf.h"

static struct alloc_queue *queue_for(struct alloc *a, uint64_t stream)
{
    struct alloc_queue **link = &a->queues;

    while (*link && (*link)->stream != stream)
        link = &(*link)->next;
    if (*link)
        return *link;
    struct alloc_queue *q = xcalloc(1, sizeof *q);
    q->stream = stream;
    q->end = &q->first;
    return *link = q;
}

/* Takes B's uses off it and records an event for each (insert_events). */
void alloc_wait_insert(struct alloc *a, struct alloc_block *b)
{
    struct alloc_use *use;

    while ((use = b->uses)) {
        struct alloc_queue *q = queue_for(a, use->stream);
        struct alloc_wait *w = xcalloc(1, sizeof *w);

        w->block = b;
        w->ticket =
            a->driver.event_record(a->driver.event_context, b, use->stream);
        *q->end = w;
        q->end = &w->next;
        b->event_count++;
        b->uses = use->next;
        free(use);
    }
}

void alloc_wait_defer(struct alloc *a, struct alloc_block *b)
{
    struct alloc_wait *w = xcalloc(1, sizeof *w);

    w->block = b;
    *a->deferred_end = w;
    a->deferred_end = &w->next;
}

/* Work captured into a graph is over when the capture is
 * (remove_cudagraph_stream_uses). */
static void drop_captured_uses(struct alloc_block *b)
{
    struct alloc_use **link = &b->uses;

    while (*link) {
        struct alloc_use *use = *link;

        if (use->captured) {
            *link = use->next;
            free(use);
        } else {
            link = &use->next;
        }
    }
}

/* insert_events_deferred_until_no_capture */
static void insert_deferred(struct alloc *a)
{
    struct alloc_wait *w;

    while ((w = a->deferred)) {
        a->deferred = w->next;
        drop_captured_uses(w->block);
        alloc_wait_insert(a, w->block);
        if (!w->block->event_count)
            alloc_block_retire(a, w->block);
        free(w);
    }
    a->deferred_end = &a->deferred;
}

void alloc_wait_drop_uses(struct alloc_block *b)
{
    struct alloc_use *use;

    while ((use = b->uses)) {
        b->uses = use->next;
        free(use);
    }
}

static void wait_finish(struct alloc *a, struct alloc_wait *w)
{
    if (!--w->block->event_count)
        alloc_block_retire(a, w->block);
    free(w);
}

/* Takes away queue *LINK where it is empty. Returns the next link. */
static struct alloc_queue **queue_advance(struct alloc_queue **link)
{
    struct alloc_queue *q = *link;

    if (q->first)
        return &q->next;
    *link = q->next;
    free(q);
    return link;
}

void alloc_wait_process(struct alloc *a)
{
    struct alloc_queue **link = &a->queues;

    insert_deferred(a);
    while (*link) {
        struct alloc_queue *q = *link;
        struct alloc_wait *w;

        while ((w = q->first) &&
               a->driver.event_query(a->driver.event_context, w->ticket)) {
            q->first = w->next;
            wait_finish(a, w);
        }
        if (!q->first)
            q->end = &q->first;
        link = queue_advance(link);
    }
}

void alloc_wait_synchronize(struct alloc *a, const struct alloc_private *pool)
{
    struct alloc_queue **link = &a->queues;

    a->stats.num_sync_all_streams++;
    insert_deferred(a);
    while (*link) {
        struct alloc_queue *q = *link;
        struct alloc_wait **at = &q->first, *w;

        while ((w = *at)) {
            if (pool && w->block->shelf->pool->owner != pool) {
                at = &w->next;
                continue;
            }
            a->driver.event_wait(a->driver.event_context, w->ticket);
            *at = w->next;
            wait_finish(a, w);
        }
        q->end = at;
        link = queue_advance(link);
    }
}

void alloc_wait_free_all(struct alloc *a)
{
    struct alloc_wait *w;
    struct alloc_queue *q;

    while ((w = a->deferred)) {
        a->deferred = w->next;
        free(w);
    }
    while ((q = a->queues)) {
        a->queues = q->next;
        while ((w = q->first)) {
            q->first = w->next;
            free(w);
        }
        free(q);
    }
}
