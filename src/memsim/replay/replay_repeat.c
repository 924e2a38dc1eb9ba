/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/replay_repeat.h"

#include <stdlib.h>

#include "common/base/map.h"
#include "common/base/xmalloc.h"
#include "memsim/replay/replay_repeat_internal.h"

/* Names of repeated blocks: no address has this bit. */
#define FIRST_NAME (UINT64_C(1) << 62)

bool call_takes(const struct replay_op *op)
{
    return op->kind == REPLAY_ALLOC || op->kind == REPLAY_OTHER_ALLOC;
}

static bool op_frees(const struct replay_op *op)
{
    return op->kind == REPLAY_FREE || op->kind == REPLAY_FREE_DONE ||
           op->kind == REPLAY_OTHER_FREE;
}

/* What a step cannot be repeated with. */
static bool is_single(const struct replay_op *op)
{
    return op->kind == REPLAY_OOM || op->kind == REPLAY_RESET ||
           op->kind == REPLAY_FRACTION || op->kind == REPLAY_SETTINGS;
}

/* --- which steps are alike ------------------------------------------------ */

int calls_read(const struct replay_repeat *r, struct call_list *calls,
                      struct err *err)
{
    struct replay_op op;
    int more;

    if (r->from->rewind(r->from->context, err))
        return -1;
    while ((more = r->from->next(r->from->context, &op, err)) > 0 &&
           op.index < r->end) {
        if (op.index < r->begins[0] ||
            !(call_takes(&op) || op_frees(&op) || is_single(&op)))
            continue;
        xgrow(&calls->all, calls->count, &calls->capacity, sizeof *calls->all);
        calls->all[calls->count++] = (struct call){.op = op};
    }
    return more < 0 ? -1 : 0;
}

size_t calls_step(const struct replay_repeat *r,
                         const struct call_list *calls, size_t back)
{
    uint64_t begin = r->begins[r->begin_count - 1 - back];
    size_t place = calls->count;

    while (place && calls->all[place - 1].op.index >= begin)
        place--;
    return place;
}

static bool is_same(const struct replay_op *a, const struct replay_op *b,
                    bool sizes)
{
    return a->kind == b->kind && a->device == b->device &&
           (!sizes || a->bytes == b->bytes) && a->stream == b->stream &&
           a->pool.first == b->pool.first && a->pool.second == b->pool.second;
}

/* The next call from *PLACE before END that takes memory; NULL: none. */
static const struct replay_op *next_taken(const struct call_list *calls,
                                          size_t *place, size_t end)
{
    while (*place < end) {
        const struct replay_op *op = &calls->all[(*place)++].op;
        if (call_takes(op) || is_single(op))
            return op;
    }
    return NULL;
}

bool calls_alike(const struct call_list *calls, size_t first, size_t end,
                 size_t middle, bool sizes)
{
    size_t a = first, b = middle;
    const struct replay_op *x, *y;

    do {
        x = next_taken(calls, &a, end);
        y = next_taken(calls, &b, calls->count);
        if (!x != !y || (x && (is_single(x) || !is_same(x, y, sizes))))
            return false;
    } while (x);
    return middle < calls->count;
}

/* --- whose block is freed ------------------------------------------------- */

/* Links C, of the steps that are repeated, with the call that took its block:
 * PLACES has the places, from 1, of their calls by address, ORDERS the numbers,
 * from 1, of those that took memory in the steps before, BY_ORDER the places of
 * the repeated ones by number. False where the block is older. */
static bool call_link(struct call *c, const struct map *places,
                      const struct map *orders, const size_t *by_order)
{
    size_t place = (uintptr_t)map_get(places, c->op.address);
    size_t order = (uintptr_t)map_get(orders, c->op.address);

    c->before = !place;
    c->taken = place ? place - 1 : order ? by_order[order - 1] : 0;
    return place || order;
}

/* No block may be freed twice by a repetition and the next one. */
static bool frees_once(const struct call_list *calls)
{
    bool *freed = xcalloc(calls->count + 1, sizeof *freed);
    bool once = true;

    for (size_t i = 0; i < calls->count; i++) {
        const struct call *c = &calls->all[i];
        if (c->op.kind != REPLAY_FREE && c->op.kind != REPLAY_OTHER_FREE)
            continue;
        once &= !freed[c->taken];
        freed[c->taken] = true;
    }
    free(freed);
    return once;
}

bool calls_choose(struct replay_repeat *r, const struct call_list *all,
                         size_t first, size_t middle)
{
    size_t *by_order = xcalloc(all->count - middle + 1, sizeof *by_order);
    struct map orders = {0}, places = {0};
    size_t order = 0;
    bool linked = true;

    for (size_t i = middle; i < all->count; i++)
        if (call_takes(&all->all[i].op))
            by_order[order++] = i - middle;
    order = 0;
    for (size_t i = first; i < middle; i++)
        if (call_takes(&all->all[i].op))
            map_put(&orders, all->all[i].op.address,
                    (void *)(uintptr_t)++order);
    for (size_t i = middle; i < all->count && linked; i++) {
        struct call c = all->all[i];
        if (call_takes(&c.op))
            map_put(&places, c.op.address, (void *)(uintptr_t)(i - middle + 1));
        else
            linked = call_link(&c, &places, &orders, by_order);
        xgrow(&r->calls.all, r->calls.count, &r->calls.capacity,
              sizeof *r->calls.all);
        r->calls.all[r->calls.count++] = c;
    }
    map_fini(&orders);
    map_fini(&places);
    free(by_order);
    return linked && frees_once(&r->calls);
}

/* Finds the fewest steps at the end that are like as many before them. */
static bool steps_choose(struct replay_repeat *r, const struct call_list *all)
{
    for (size_t n = 1; 2 * n < r->begin_count; n++) {
        size_t middle = calls_step(r, all, n);
        size_t first = calls_step(r, all, 2 * n);
        r->steps = n;
        r->calls.count = 0;
        if (calls_alike(all, first, middle, middle, true) &&
            calls_choose(r, all, first, middle))
            return true;
    }
    return false;
}

/* --- the source ----------------------------------------------------------- */

static uint64_t block_name(const struct replay_repeat *r, uint64_t repetition,
                           size_t place)
{
    return FIRST_NAME + repetition * r->calls.count + place;
}

static void repeat_next(struct replay_repeat *r, struct replay_op *op)
{
    uint64_t repetition = r->at / r->calls.count;
    size_t place = (size_t)(r->at % r->calls.count);
    const struct call *c = &r->calls.all[place];

    *op = c->op;
    op->index = r->end + r->at++;
    if (call_takes(op))
        op->address = op->address ? block_name(r, repetition, place) : 0;
    else if (!c->before)
        op->address = block_name(r, repetition, c->taken);
    else if (repetition)
        op->address = block_name(r, repetition - 1, c->taken);
    else
        op->address = r->calls.all[c->taken].op.address;
}

static int source_next(void *context, struct replay_op *op, struct err *err)
{
    struct replay_repeat *r = context;

    if (!r->at) {
        int more = r->from->next(r->from->context, op, err);
        if (more < 0 || (more && op->index < r->end))
            return more;
    }
    if (r->at == r->most)
        return 0;
    repeat_next(r, op);
    return 1;
}

static int source_rewind(void *context, struct err *err)
{
    struct replay_repeat *r = context;

    r->at = 0;
    return r->from->rewind(r->from->context, err);
}

struct replay_repeat *repeat_make(const struct replay_source *source,
                                  const uint64_t *begins, size_t count,
                                  uint64_t most)
{
    struct replay_repeat *r = xcalloc(1, sizeof *r);

    r->from = source;
    r->source = *source;
    r->source.context = r;
    r->source.next = source_next;
    r->source.rewind = source_rewind;
    r->source.real_addresses = false;
    r->most = most;
    for (size_t i = count > REPLAY_REPEAT_BEGINS ? count - REPLAY_REPEAT_BEGINS
                                                 : 0;
         i < count; i++)
        r->begins[r->begin_count++] = begins[i];
    r->end = r->begin_count ? r->begins[r->begin_count - 1] : 0;
    return r;
}

int replay_repeat_create(struct replay_repeat **repeat,
                         const struct replay_source *source,
                         const uint64_t *begins, size_t count, uint64_t most,
                         struct err *err)
{
    struct replay_repeat *r = repeat_make(source, begins, count, most);
    struct call_list calls = {0};

    *repeat = NULL;
    int rc = calls_read(r, &calls, err);
    if (!rc && steps_choose(r, &calls)) {
        *repeat = r;
        r = NULL;
    }
    replay_repeat_destroy(r);
    free(calls.all);
    return rc;
}

void replay_repeat_destroy(struct replay_repeat *repeat)
{
    if (!repeat)
        return;
    free(repeat->calls.all);
    free(repeat);
}

const struct replay_source *replay_repeat_source(struct replay_repeat *repeat)
{
    return &repeat->source;
}

uint64_t replay_repeat_whole(const struct replay_repeat *repeat,
                             uint64_t index)
{
    uint64_t calls = index > repeat->end ? index - repeat->end : 0;
    uint64_t repetitions = calls / repeat->calls.count;
    const struct call *c = &repeat->calls.all[calls % repeat->calls.count];
    uint64_t steps = 0;

    for (size_t i = repeat->begin_count - repeat->steps;
         i < repeat->begin_count; i++)
        steps += c->op.index >= repeat->begins[i];
    return repetitions * repeat->steps + steps;
}
