/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/gradient_groups.h"

#include <string.h>

#include "common/base/map.h"
#include "memsim/change/gradient_marks.h"

static const struct trace_collective *collective_at(const struct records *r,
                                                    size_t index)
{
    return r->all[index].kind == TRACE_COLLECTIVE
               ? (const struct trace_collective *)records_fields(r,
                                                                 &r->all[index])
               : NULL;
}

static bool is_named(const struct records *r, const struct trace_collective *c,
                     const char *kind)
{
    return strstr(trace_names_get(&r->names, c->name), kind) != NULL;
}

/* The first gradient of STEP; its begin: no gradient is marked. */
static size_t first_gradient(const struct records *r, const struct step *step)
{
    struct gradient_mark ignored;

    for (size_t i = step->first; i < step->end && i < r->count; i++)
        if (gradient_mark_read(r, i, &ignored))
            return i;
    return step->first;
}

/* Puts the groups that add tensors in [FROM, UNTIL) into GROUPS. */
static void adding_groups(const struct records *r, size_t from, size_t until,
                          struct map *groups)
{
    for (size_t i = from; i < until; i++) {
        const struct trace_collective *c = collective_at(r, i);
        if (c && (is_named(r, c, "AllReduce") ||
                  is_named(r, c, "ReduceScatter")))
            map_put(groups, c->communicator, groups);
    }
}

static size_t step_collectives(const struct records *r, const struct step *step)
{
    struct map groups = {.slots = NULL};
    size_t count = 0;

    adding_groups(r, step->first, first_gradient(r, step), &groups);
    for (size_t i = step->first; i < step->end && i < r->count; i++) {
        const struct trace_collective *c = collective_at(r, i);
        count += c && !c->send && !c->receive &&
                 !map_get(&groups, c->communicator);
    }
    map_fini(&groups);
    return count;
}

size_t gradient_collectives(const struct records *r)
{
    size_t count = 0;

    for (size_t i = 0; i < r->steps.count; i++)
        count += step_collectives(r, &r->steps.steps[i]);
    return count;
}
