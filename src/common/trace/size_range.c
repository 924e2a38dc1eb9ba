/* SPDX-License-Identifier: Apache-2.0 */
#include "common/trace/size_range.h"

void size_ranges_tell(struct size_ranges *s, const struct trace_item *item)
{
    const struct trace_size_range *told = trace_as_size_range(item);

    s->rows[s->next++ % SIZE_RANGES] =
        (struct size_range){.device = told->device,
                            .bytes = told->bytes,
                            .least_bytes = told->least_bytes,
                            .most_bytes = told->most_bytes,
                            .thread = item->head.thread};
}

bool size_ranges_take(struct size_ranges *s, const struct trace_item *alloc,
                      struct size_range *range)
{
    const struct trace_block_alloc *a = trace_as_block_alloc(alloc);

    for (unsigned i = 0; i < SIZE_RANGES; i++) {
        struct size_range *row = &s->rows[i];

        if (row->bytes && row->bytes == a->requested_bytes &&
            row->device == a->device && row->thread == alloc->head.thread) {
            *range = *row;
            row->bytes = 0;
            return true;
        }
    }
    return false;
}
