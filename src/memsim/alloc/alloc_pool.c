/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/base/xmalloc.h"
#include "memsim/alloc/alloc_shelf.h"

void alloc_pool_init(struct alloc_pool *pool, bool small,
                     struct alloc_private *owner)
{
    *pool = (struct alloc_pool){.small = small, .owner = owner};
}

static struct alloc_private *alloc_pool_find(struct alloc *a,
                                             struct alloc_pool_id id)
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
        p = private_new(a, id, flags);
        if (flags & ALLOC_POOL_USE_ON_OOM)
            alloc_order_insert(&a->fallbacks, p);
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

static size_t scope_find(const struct alloc *a, struct alloc_pool_id id)
{
    size_t i = 0;

    while (i < a->scope_count && (a->scopes[i].pool->id.first != id.first ||
                                  a->scopes[i].pool->id.second != id.second))
        i++;
    return i;
}

int alloc_pool_begin(struct alloc *a, struct alloc_pool_id id,
                     alloc_selects *selects, void *context)
{
    if (scope_find(a, id) < a->scope_count || alloc_pool_create(a, id, 0))
        return -1;
    xgrow(&a->scopes, a->scope_count, &a->scope_capacity, sizeof *a->scopes);
    a->scopes[a->scope_count++] =
        (struct alloc_scope){alloc_pool_find(a, id), selects, context};
    return 0;
}

int alloc_pool_end(struct alloc *a, struct alloc_pool_id id)
{
    size_t i = scope_find(a, id);

    if (i == a->scope_count)
        return -1;
    for (a->scope_count--; i < a->scope_count; i++)
        a->scopes[i] = a->scopes[i + 1];
    return 0;
}

void alloc_capture_begin(struct alloc *a)
{
    a->capture_count++;
}

int alloc_capture_end(struct alloc *a)
{
    if (!a->capture_count)
        return -1;
    a->capture_count--;
    return 0;
}

int alloc_pool_release(struct alloc *a, struct alloc_pool_id id)
{
    struct alloc_private *p = alloc_pool_find(a, id);

    if (!p || p->use_count <= 0 ||
        (p->use_count == 1 && scope_find(a, id) < a->scope_count))
        return -1;
    if (--p->use_count == 0) {
        alloc_order_insert(&a->freeables, p);
        alloc_order_remove(&a->fallbacks, p);
    }
    return 0;
}

struct alloc_private *alloc_pool_of_scope(const struct alloc *a,
                                          uint64_t stream)
{
    for (size_t n = 0; n < a->scope_count; n++) {
        size_t i = a->rules->newest_capture_first ? a->scope_count - 1 - n : n;
        const struct alloc_scope *c = &a->scopes[i];

        if (!c->selects || c->selects(c->context, stream))
            return c->pool;
    }
    return NULL;
}

void alloc_pool_delete(struct alloc *a, struct alloc_private *p)
{
    struct alloc_private **link = &a->privates;

    while (*link != p)
        link = &(*link)->next;
    *link = p->next;
    alloc_shelf_free_all(&p->small);
    alloc_shelf_free_all(&p->large);
    free(p);
}

void alloc_pool_free_all(struct alloc *a)
{
    while (a->privates)
        alloc_pool_delete(a, a->privates);
    free(a->scopes);
    free(a->fallbacks.places);
    free(a->freeables.places);
}
