/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/tape_loss.h"

#include <stdlib.h>


#define LEAST_BYTES (1u << 20) /* of logits that are worth it */

/* Two shapes share a key by chance: then more is made smaller. */
static uint64_t key_of(const struct tape_item *item)
{
    return item->elements * UINT64_C(0x9e3779b97f4a7c15) ^ item->last_dim;
}

/* The shapes of logits: of what the loss makes of them. */
static void shapes_find(struct map *shapes, const struct tape *from)
{
    for (size_t i = 0; i < from->count; i++) {
        const struct tape_item *item = &from->items[i];
        if (tape_item_is_taken(item) && item->holds & TAPE_LOSS &&
            item->op.bytes >= LEAST_BYTES)
            map_put(shapes, key_of(item), shapes);
    }
}

static bool is_of_loss(const struct map *shapes, const struct tape_item *item)
{
    return tape_item_is_taken(item) && item->elements &&
           !(item->holds & (TAPE_PARAMETER | TAPE_OWNED)) &&
           (item->phase == TRACE_PHASE_FORWARD ||
            item->phase == TRACE_PHASE_BACKWARD) &&
           map_get(shapes, key_of(item));
}

uint64_t tape_chunk_loss(struct tape *to, const struct tape *from,
                         unsigned chunks)
{
    struct map shapes = {0};
    uint64_t saved_bytes = 0;

    tape_init_like(to, from);
    shapes_find(&shapes, from);
    for (size_t i = 0; i < from->count; i++) {
        struct tape_item item = from->items[i];

        if (chunks > 1 && is_of_loss(&shapes, &item)) {
            uint64_t bytes = (item.op.bytes + chunks - 1) / chunks;
            saved_bytes += item.op.bytes - bytes;
            item.op.bytes = bytes;
        }
        tape_add(to, &item);
    }
    map_fini(&shapes);
    return saved_bytes;
}
