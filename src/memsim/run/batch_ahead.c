/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/batch_ahead.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

/* Searches may meet in one batch; so many of them are looked at for each batch
 * that is wanted. */
#define SEARCHES 4

/* Searches that may come to be, the next ones first. */
struct queue {
    struct batch_search *of;
    size_t count, most;
};

static struct batch_search search_copy(const struct batch_search *s)
{
    struct batch_search copy = *s;

    copy.tries = xcalloc(s->count + 1, sizeof *copy.tries);
    copy.capacity = s->count + 1;
    if (s->count)
        memcpy(copy.tries, s->tries, s->count * sizeof *copy.tries);
    return copy;
}

static void outcome_tell(struct batch_search *s, const struct batch_try *t)
{
    batch_search_tell(s, t->fits, t->peak_allocated_bytes, t->peak_used_bytes);
}

/* Goes on with S as far as results are known. Returns the batch that it needs
 * then; 0: none. */
static uint64_t search_known(struct batch_search *s,
                             const struct batch_known *known)
{
    struct batch_try t;
    uint64_t batch;

    while ((batch = batch_search_next(s)) &&
           known->find(known->context, batch, &t))
        outcome_tell(s, &t);
    return batch;
}

/* Both results that S may get. */
static void queue_branch(struct queue *q, const struct batch_search *s)
{
    struct batch_try t = batch_search_expected(s);

    for (int i = 0; i < 2 && q->count < q->most; i++) {
        q->of[q->count] = search_copy(s);
        outcome_tell(&q->of[q->count++], &t);
        t.fits = !t.fits;
    }
}

static bool has_batch(const uint64_t *batches, size_t count, uint64_t batch)
{
    for (size_t i = 0; i < count; i++)
        if (batches[i] == batch)
            return true;
    return false;
}

size_t batch_ahead(const struct batch_search *s,
                   const struct batch_known *known, uint64_t *batches,
                   size_t most)
{
    struct queue q = {.most = SEARCHES * most + 1};
    size_t count = 0;

    q.of = xcalloc(q.most, sizeof *q.of);
    q.of[q.count++] = search_copy(s);
    for (size_t i = 0; i < q.count && count < most; i++) {
        uint64_t batch = search_known(&q.of[i], known);
        if (!batch)
            continue;
        if (!has_batch(batches, count, batch))
            batches[count++] = batch;
        queue_branch(&q, &q.of[i]);
    }
    for (size_t i = 0; i < q.count; i++)
        batch_search_fini(&q.of[i]);
    free(q.of);
    return count;
}
