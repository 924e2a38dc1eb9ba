/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/rank_axes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"
#include "common/trace/session.h"

static uint64_t count_places(const struct rank_axes *axes)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < axes->count; i++)
        count *= axes->axis[i].size;
    return count;
}

static uint32_t ranks_count(const struct rank_axes *axes, uint32_t world)
{
    struct rank_set ranks = {.count = 0};

    rank_axes_ranks(axes, world, &ranks);
    uint32_t count = ranks.count;
    rank_set_fini(&ranks);
    return count;
}

/* --- reading -------------------------------------------------------------- */

static bool are_messages(const struct rank_axis *axis)
{
    return !strcmp(axis->kind, RANK_AXIS_MESSAGES);
}

static bool axis_add(struct rank_axes *axes, const struct rank_axis *axis,
                     uint32_t world, uint32_t most)
{
    if (axis->stride < 1 || axis->size < 2 ||
        (uint64_t)axis->stride * axis->size > world)
        return false;
    for (uint32_t i = 0; i < axes->count; i++)
        if (axes->axis[i].stride == axis->stride &&
            axes->axis[i].size == axis->size)
            return false;
    if (axes->count < RANK_AXES && count_places(axes) * axis->size <= most) {
        axes->axis[axes->count++] = *axis;
        if (ranks_count(axes, world) <= most)
            return true;
        axes->count--;
    }
    axes->left_out++;
    return false;
}

static bool rank_add(struct rank_axes *axes, uint32_t rank, uint32_t world)
{
    if (!rank || rank >= world - 1)
        return false;
    for (uint32_t i = 0; i < axes->alone_count; i++)
        if (axes->alone[i] == rank)
            return false;
    if (axes->alone_count == RANK_AXES_ALONE) {
        axes->left_out++;
        return false;
    }
    axes->alone[axes->alone_count++] = rank;
    return true;
}

static bool line_read(struct rank_axes *axes, const char *line, uint32_t world,
                      uint32_t most)
{
    struct rank_axis axis = {0};
    char place[64] = "";
    uint32_t rank;

    if (sscanf(line, "axis %u %u %15s %63[^\n]", &axis.stride, &axis.size,
               axis.kind, axis.place) >= 3) {
        return axis_add(axes, &axis, world, most);
    }
    if (sscanf(line, "rank %u %63[^\n]", &rank, place) < 1 ||
        !rank_add(axes, rank, world))
        return false;
    memcpy(axes->alone_place, place, sizeof place);
    return true;
}

bool rank_axes_read(struct rank_axes *axes, const char *directory,
                    uint32_t world, uint32_t most)
{
    char *path = xasprintf("%s/" SESSION_AXES, directory), *line = NULL;
    FILE *file = fopen(path, "re");
    size_t capacity = 0;
    bool is_new = false;

    axes->left_out = 0;
    while (file && getline(&line, &capacity, file) > 0)
        is_new = line_read(axes, line, world, most) || is_new;
    free(line);
    if (file)
        fclose(file);
    free(path);
    return is_new;
}

/* --- the ranks ------------------------------------------------------------ */

/* Whether the last rank is the one that is run of those with its places: a
 * chain of messages then ends at it. */
static bool ends_chain(const struct rank_axes *axes, uint32_t world)
{
    bool messages = false;

    for (uint32_t i = 0; i < axes->count; i++)
        messages = messages || are_messages(&axes->axis[i]);
    return messages && !rank_axis_alike(axes->axis, axes->count, 0, world - 1);
}

static bool has_place(const struct rank_axes *axes,
                      const struct rank_set *ranks, uint32_t rank)
{
    for (uint32_t r = 0; rank_set_next(ranks, r, &r); r++)
        if (rank_axis_alike(axes->axis, axes->count, r, rank))
            return true;
    return false;
}

static bool is_alone(const struct rank_axes *axes, uint32_t rank,
                     uint32_t world)
{
    for (uint32_t i = 0; i < axes->alone_count; i++)
        if (axes->alone[i] == rank)
            return true;
    return rank == world - 1 || (rank == 1 && !axes->count);
}

void rank_axes_ranks(const struct rank_axes *axes, uint32_t world,
                     struct rank_set *ranks)
{
    bool chain = ends_chain(axes, world);

    for (uint32_t rank = 0; rank < world; rank++) {
        bool is_last = chain && rank_axis_alike(axes->axis, axes->count, rank,
                                                world - 1);
        if (is_alone(axes, rank, world) ||
            (!is_last && !has_place(axes, ranks, rank)))
            rank_set_add(ranks, rank);
    }
}

uint32_t *rank_axes_stands(const struct rank_axes *axes,
                           const struct rank_set *ranks, uint32_t world)
{
    uint32_t *stands = xcalloc(world ? world : 1, sizeof *stands);
    uint32_t run[SESSION_RANKS], count = 0;

    for (uint32_t r = 0; count < SESSION_RANKS && rank_set_next(ranks, r, &r);
         r++)
        run[count++] = r;
    for (uint32_t r = 0; r < world; r++)
        stands[r] = rank_axis_stand(axes->axis, axes->count, run, count, r);
    return stands;
}

char *rank_axes_text(const struct rank_axes *axes)
{
    char text[RANK_AXES * 24 + 1] = "", *at = text;

    for (uint32_t i = 0; i < axes->count; i++)
        at += sprintf(at, "%s%u:%u", i ? "," : "", axes->axis[i].stride,
                      axes->axis[i].size);
    return xstrdup(text);
}
