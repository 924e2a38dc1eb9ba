/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/tape_kept.h"

#include <stdlib.h>

#include "common/base/xmalloc.h"

#define HELD_CALLS 2 /* of models; the second one finds it gone */

struct keeping {
    struct tape *to;
    const struct tape *from;
    uint32_t *pairs, *calls; /* calls: of models until this item */
    bool *gone;
    uint32_t *recent; /* blocks of HELD_CALLS calls that are kept */
    size_t recent_count, recent_capacity;
    uint64_t saved_bytes;
};

static void calls_count(struct keeping *c)
{
    uint32_t calls = 0;
    int depth = 0;

    for (uint32_t i = 0; i < c->from->count; i++) {
        const struct tape_item *item = &c->from->items[i];

        calls += item->kind == TAPE_ENTER && !depth;
        depth += (item->kind == TAPE_ENTER) - (item->kind == TAPE_LEAVE);
        c->calls[i] = calls;
    }
    c->calls[c->from->count] = calls;
}

/* Does the block that item I takes outlive the next call of a model? */
static bool is_kept(const struct keeping *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];
    size_t end = c->pairs[i] == TAPE_NONE ? c->from->count : c->pairs[i];

    return tape_item_is_taken(item) && item->phase == TRACE_PHASE_FORWARD &&
           !(item->holds & (TAPE_OWNED | TAPE_PARAMETER)) &&
           c->calls[end] > c->calls[i] + HELD_CALLS;
}

static void recent_free(struct keeping *c, uint32_t at)
{
    size_t kept = 0;

    for (size_t k = 0; k < c->recent_count; k++) {
        uint32_t i = c->recent[k];
        const struct tape_item *taken = &c->from->items[i];

        if (c->calls[i] + HELD_CALLS > c->calls[at]) {
            c->recent[kept++] = i;
            continue;
        }
        tape_add_call(c->to, taken, &c->from->items[at], REPLAY_FREE,
                      taken->op.address);
        c->gone[i] = true;
        c->saved_bytes += taken->op.bytes;
    }
    c->recent_count = kept;
}

static void item_copy(struct keeping *c, uint32_t i)
{
    const struct tape_item *item = &c->from->items[i];
    uint32_t pair = c->pairs[i];

    if (i && c->calls[i] != c->calls[i - 1])
        recent_free(c, i);
    if (tape_item_is_taken(item) || item->kind != TAPE_CALL ||
        pair == TAPE_NONE || !c->gone[pair])
        tape_add(c->to, item);
    if (!is_kept(c, i))
        return;
    xgrow(&c->recent, c->recent_count, &c->recent_capacity, sizeof *c->recent);
    c->recent[c->recent_count++] = i;
}

uint64_t tape_free_kept(struct tape *to, const struct tape *from)
{
    struct keeping c = {.to = to, .from = from, .pairs = tape_pairs(from)};

    tape_init_like(to, from);
    c.gone = xcalloc(from->count + 1, sizeof *c.gone);
    c.calls = xcalloc(from->count + 1, sizeof *c.calls);
    calls_count(&c);
    for (uint32_t i = 0; i < from->count; i++)
        item_copy(&c, i);
    free(c.recent);
    free(c.calls);
    free(c.gone);
    free(c.pairs);
    return c.saved_bytes;
}
