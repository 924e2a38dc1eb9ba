/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/alloc/alloc_internal.h"

#include <stdlib.h>

#include "common/xmalloc.h"

void alloc_pool_init(struct alloc_pool *pool, bool small,
                     struct alloc_private *owner)
{
    *pool = (struct alloc_pool){
        .small = small, .owner = owner, .holes.by_address = true};
}

struct alloc_private *alloc_pool_find(struct alloc *a, struct alloc_pool_id id)
{
    struct alloc_private *p = a->privates;

    while (p && (p->id.first != id.first || p->id.second != id.second))
        p = p->next;
    return p;
}

static struct alloc_private *
private_new(struct alloc *a, struct alloc_pool_id id, unsigned flags)
{
    struct alloc_private **link = &a->privates;
    struct alloc_private *p = xcalloc(1, sizeof *p);

    p->id = id;
    p->flags = flags;
    p->use_count = 1;
    alloc_pool_init(&p->small, true, p);
    alloc_pool_init(&p->large, false, p);
    while (*link)
        link = &(*link)->next;
    return *link = p;
}

int alloc_pool_create(struct alloc *a, struct alloc_pool_id id, unsigned flags)
{
    struct alloc_private *p = alloc_pool_find(a, id);

    if (id.first == 0 && id.second == 0)
        return -1;
    if (!p) {
        private_new(a, id, flags);
        return 0;
    }
    if (p->use_count <= 0)
        return -1;
    p->use_count++;
    return 0;
}

struct alloc_private *alloc_pool_obtain(struct alloc *a,
                                        struct alloc_pool_id id)
{
    if (id.first == 0 && id.second == 0)
        return NULL;
    struct alloc_private *p = alloc_pool_find(a, id);
    return p ? p : private_new(a, id, 0);
}

static size_t capture_find(const struct alloc *a, struct alloc_pool_id id)
{
    size_t i = 0;

    while (i < a->capture_count &&
           (a->captures[i].pool->id.first != id.first ||
            a->captures[i].pool->id.second != id.second))
        i++;
    return i;
}

int alloc_pool_begin(struct alloc *a, struct alloc_pool_id id,
                     alloc_selects *selects, void *context)
{
    if (capture_find(a, id) < a->capture_count || alloc_pool_create(a, id, 0))
        return -1;
    xgrow(&a->captures, a->capture_count, &a->capture_capacity,
          sizeof *a->captures);
    a->captures[a->capture_count++] =
        (struct alloc_capture){alloc_pool_find(a, id), selects, context};
    return 0;
}

int alloc_pool_end(struct alloc *a, struct alloc_pool_id id)
{
    size_t i = capture_find(a, id);

    if (i == a->capture_count)
        return -1;
    for (a->capture_count--; i < a->capture_count; i++)
        a->captures[i] = a->captures[i + 1];
    return 0;
}

int alloc_pool_release(struct alloc *a, struct alloc_pool_id id)
{
    struct alloc_private *p = alloc_pool_find(a, id);

    if (!p || p->use_count <= 0 ||
        (p->use_count == 1 && capture_find(a, id) < a->capture_count))
        return -1;
    if (--p->use_count == 0) {
        p->freeable = true;
        p->flags &= ~(unsigned)ALLOC_POOL_USE_ON_OOM;
    }
    return 0;
}

static struct alloc_private *captured_by(const struct alloc *a, uint64_t stream)
{
    for (size_t n = 0; n < a->capture_count; n++) {
        size_t i =
            a->rules->newest_capture_first ? a->capture_count - 1 - n : n;
        const struct alloc_capture *c = &a->captures[i];

        if (!c->selects || c->selects(c->context, stream))
            return c->pool;
    }
    return NULL;
}

struct alloc_pool *alloc_pool_for(struct alloc *a, uint64_t bytes,
                                  uint64_t stream)
{
    struct alloc_private *p = a->capture_count ? captured_by(a, stream) : NULL;

    if (p)
        return bytes <= SMALL_BYTES ? &p->small : &p->large;
    return bytes <= SMALL_BYTES ? &a->small : &a->large;
}

void alloc_pool_free_all(struct alloc *a)
{
    while (a->privates) {
        struct alloc_private *p = a->privates;

        a->privates = p->next;
        free(p);
    }
    free(a->captures);
}
