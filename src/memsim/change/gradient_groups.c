/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/gradient_groups.h"

#include <string.h>

#include "common/base/map.h"
#include "memsim/change/gradient_marks.h"

#define NAME_BYTES 24 /* of a group, in the text of its communicator */

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

/* May C average gradients, where the groups ADDING add before they are ready?
 */
static bool may_average(const struct trace_collective *c,
                        const struct map *adding)
{
    return c && !c->send && !c->receive &&
           !(c->bytes && c->bytes <= GRADIENT_SMALL_BYTES) &&
           !map_get(adding, c->communicator);
}

static size_t step_collectives(const struct records *r, const struct step *step)
{
    struct map groups = {.slots = NULL};
    size_t count = 0;

    adding_groups(r, step->first, first_gradient(r, step), &groups);
    for (size_t i = step->first; i < step->end && i < r->count; i++)
        count += may_average(collective_at(r, i), &groups);
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

/* The name of COMMUNICATOR, NAME_BYTES padded with blanks; "": it has none. */
static const char *group_name(const struct records *r, uint64_t communicator)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct trace_communicator *c =
            (const struct trace_communicator *)records_fields(r, &r->all[i]);
        if (r->all[i].kind == TRACE_COMMUNICATOR &&
            c->communicator == communicator &&
            r->all[i].text_bytes >= NAME_BYTES)
            return records_text(r, &r->all[i]);
    }
    return "";
}

static bool is_group(const struct records *r, uint64_t communicator,
                     const char *name)
{
    size_t length = strlen(name);
    const char *text = group_name(r, communicator);

    return *text && length <= NAME_BYTES && !memcmp(text, name, length) &&
           (length == NAME_BYTES || text[length] == ' ');
}

static int refuse_two(const struct records *r, uint64_t a, uint64_t b,
                      struct err *err)
{
    const char *first = group_name(r, a), *second = group_name(r, b);

    return err_set(err,
                   "--change: stages cannot be made of this profile: two "
                   "groups may average gradients, '%.*s' and '%.*s': name the "
                   "one that does with --dp N --average GROUP",
                   (int)strcspn(first, " "), first, (int)strcspn(second, " "),
                   second);
}

static int step_group(const struct records *r, const struct step *step,
                      const char *average, struct gradient_group *group,
                      struct err *err)
{
    struct map adding = {.slots = NULL};
    size_t from = first_gradient(r, step);
    int rc = 0;

    if (!average)
        adding_groups(r, step->first, from, &adding);
    for (size_t i = step->first;
         !rc && from > step->first && i < step->end && i < r->count; i++) {
        const struct trace_collective *c = collective_at(r, i);
        if (!may_average(c, &adding) ||
            (average && !is_group(r, c->communicator, average)))
            continue;
        if (group->communicator && group->communicator != c->communicator)
            rc = refuse_two(r, group->communicator, c->communicator, err);
        group->communicator = c->communicator;
        group->shards |= !is_named(r, c, "AllReduce");
    }
    map_fini(&adding);
    return rc;
}

int gradient_group_find(const struct records *r, const char *average,
                        struct gradient_group *group, struct err *err)
{
    *group = (struct gradient_group){.communicator = 0};
    for (size_t i = 0; i < r->steps.count; i++)
        if (step_group(r, &r->steps.steps[i], average, group, err))
            return -1;
    if (average && !group->communicator)
        return err_set(err, "--average: no group '%s' of the profile averages "
                            "gradients", average);
    return 0;
}
