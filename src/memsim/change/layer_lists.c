/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/layer_lists.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

#define CHUNK_ELEMENTS 65536
#define DEPTH_MAX      5

/* depth_to_max_tensors and depth_to_max_tensors_scalarlist, for 4 KiB of
 * arguments and for 32 KiB (PyTorch 2.12 for CUDA 13 and later). */
static const struct {
    uint32_t tensors[DEPTH_MAX], blocks;
} rooms[] = {
    {{110, 64, 48, 36, 30}, 320},
    {{96, 64, 48, 36, 30}, 320},
    {{770, 448, 336, 252, 210}, 2240},
    {{672, 448, 336, 252, 210}, 2240},
};

unsigned list_variant(const char *name, const char *version)
{
    char *end;
    unsigned long major = strtoul(version, &end, 10);
    unsigned long minor = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;
    bool large =
        (major > 2 || (major == 2 && minor >= 12)) && !strstr(version, "+cu12");

    return (strstr(name, "ScalarListMetadata") ? LIST_SCALARS : LIST_PLAIN) |
           (large ? LIST_LARGE : 0);
}

bool list_room_get(uint32_t depth, unsigned variant, struct list_room *room)
{
    if (depth < 1 || depth > DEPTH_MAX || variant >= LIST_VARIANTS)
        return false;
    *room = (struct list_room){rooms[variant].tensors[depth - 1],
                               rooms[variant].blocks};
    return true;
}

struct cut {
    struct list_launch *all;
    size_t count, capacity;
    struct list_launch now;
};

static void launch_add(struct cut *c)
{
    xgrow(&c->all, c->count, &c->capacity, sizeof *c->all);
    c->all[c->count++] = c->now;
    c->now = (struct list_launch){0};
}

static void add_tensor(struct cut *c, uint64_t elements,
                       const struct list_room *room)
{
    uint64_t chunks = (elements + CHUNK_ELEMENTS - 1) / CHUNK_ELEMENTS;

    for (uint64_t i = 0; i < chunks; i++) {
        bool last = i + 1 == chunks;
        if (!i || !c->now.blocks)
            c->now.tensors++;
        c->now.blocks++;
        c->now.elements +=
            last ? elements - i * CHUNK_ELEMENTS : CHUNK_ELEMENTS;
        if ((last && c->now.tensors == room->tensors) ||
            c->now.blocks == room->blocks)
            launch_add(c);
    }
}

size_t list_cut(const uint64_t *sizes, size_t count,
                const struct list_room *room, struct list_launch **all)
{
    struct cut c = {.all = NULL};

    for (size_t i = 0; i < count; i++)
        add_tensor(&c, sizes[i], room);
    if (c.now.blocks)
        launch_add(&c);
    *all = c.all;
    return c.count;
}
