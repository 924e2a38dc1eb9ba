/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/list_launches.h"

#include <stdlib.h>
#include <string.h>

struct trace_launch *list_launch_at(const struct list_place *place, size_t op)
{
    const struct record *record = &place->records->all[place->ops[op]];

    return record->kind == TRACE_LAUNCH
               ? (struct trace_launch *)records_fields(place->records, record)
               : NULL;
}

bool list_launch_is(const struct trace_launch *l)
{
    return l && l->shared_bytes_rule >> 32 == TRACE_RULE_FOREACH;
}

/* Are the COUNT launches from OP on those of EXPECTED? */
static bool launches_match(const struct list_place *place, size_t op,
                           const struct list_launch *expected, size_t count)
{
    const struct trace_launch *first = list_launch_at(place, op);

    for (size_t i = 0; i < count; i++) {
        const struct trace_launch *l =
            op + i < place->end ? list_launch_at(place, op + i) : NULL;
        if (!list_launch_is(l) || l->name != first->name || l->d != first->d ||
            l->a != expected[i].elements || l->b != expected[i].tensors ||
            l->c != expected[i].blocks)
            return false;
    }
    return count > 0;
}

size_t list_launches_find(const struct list_place *place, size_t op,
                          const uint64_t *sizes, size_t count, unsigned variant)
{
    struct list_launch *all;
    struct list_room room;

    if (!list_room_get((uint32_t)list_launch_at(place, op)->d, variant, &room))
        return 0;
    size_t launches = list_cut(sizes, count, &room, &all);
    if (!launches_match(place, op, all, launches))
        launches = 0;
    free(all);
    return launches;
}

/* Adds a record like RECORD that launches LAUNCH. */
static void launch_add(struct records *r, size_t record,
                       const struct list_launch *launch)
{
    struct record like = r->all[record];
    uint64_t fields[TRACE_FIELDS_MAX];
    struct trace_launch *l = (struct trace_launch *)fields;

    memcpy(fields, records_fields(r, &like), sizeof fields);
    l->a = launch->elements;
    l->b = launch->tensors;
    l->c = launch->blocks;
    l->grid_x_y = trace_pack(launch->blocks, (uint32_t)(l->grid_x_y >> 32));
    records_add(r, &like, fields, "");
}

void list_launches_replace(struct rewrite *w, size_t op, size_t count,
                           const uint64_t *sizes, size_t wanted,
                           unsigned variant)
{
    const struct list_place place = {w->records, w->ops, w->op_count};
    struct list_launch *all;
    struct list_room room;

    if (!list_room_get((uint32_t)list_launch_at(&place, op)->d, variant, &room))
        return;
    size_t launches = list_cut(sizes, wanted, &room, &all);
    for (size_t i = 0, made = 0; i < count; i++) {
        struct edit edit = {.kind = EDIT_REPLACE,
                            .from = w->ops[op + i],
                            .until = w->ops[op + i] + 1,
                            .first = w->records->count};
        for (; made < launches && (made <= i || i + 1 == count); made++) {
            launch_add(w->records, w->ops[op + i], &all[made]);
            edit.copies++;
        }
        rewrite_add(w, &edit);
    }
    free(all);
}
