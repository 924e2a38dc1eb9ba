/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/replay/reserved_emptied.h"

#include <stdlib.h>

#include "common/base/map.h"
#include "common/base/xmalloc.h"

struct firsts {
    struct map seen; /* by plan and device */
    struct reserved_moment *list;
    size_t count, capacity;
};

static void take_first(struct firsts *f, const struct replay_op *op)
{
    uint64_t key = op->plan * REPLAY_DEVICES + op->device;

    if (op->kind != REPLAY_ALLOC || !op->plan || !op->most_bytes ||
        map_get(&f->seen, key))
        return;
    map_put(&f->seen, key, f);
    xgrow(&f->list, f->count, &f->capacity, sizeof *f->list);
    f->list[f->count++] = (struct reserved_moment){op->index, op->device};
}

static void moments_spread(const struct firsts *f, struct reserved_moments *m)
{
    m->count = f->count < RESERVED_MOMENTS ? f->count : RESERVED_MOMENTS;
    for (size_t i = 0; i < m->count; i++)
        m->at[i] = f->list[i * f->count / m->count];
}

int reserved_moments_find(const struct replay_source *source,
                          struct reserved_moments *m, struct err *err)
{
    struct firsts f = {0};
    struct replay_op op;
    int more = source->rewind(source->context, err);

    while (!more && (more = source->next(source->context, &op, err)) > 0) {
        take_first(&f, &op);
        more = 0;
    }
    moments_spread(&f, m);
    map_fini(&f.seen);
    free(f.list);
    return more < 0 ? -1 : 0;
}

void reserved_moment_plan(const struct replay_plan *base,
                          const struct reserved_moment *moment,
                          struct replay_plan *plan)
{
    const struct replay_deed emptied = {
        .index = moment->index, .device = moment->device, .is_flush = true};
    size_t at = 0;

    *plan = *base;
    plan->count = plan->capacity = base->count + 1;
    plan->deeds = xcalloc(plan->count, sizeof *plan->deeds);
    for (size_t i = 0; i < base->count; i++) {
        if (at == i && base->deeds[i].index <= moment->index)
            at++;
        plan->deeds[i + (i >= at)] = base->deeds[i];
    }
    plan->deeds[at] = emptied;
}
