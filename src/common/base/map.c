/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/map.h"

#include "common/base/xmalloc.h"

struct map_slot {
    uint64_t key;
    void *value; /* NULL: free */
};

/* The finaliser of splitmix64: keys are addresses, whose low bits are equal. */
static size_t home_slot(const struct map *map, uint64_t key)
{
    key = (key ^ key >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ key >> 27) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(key ^ key >> 31) & (map->capacity - 1);
}

/* Where KEY is, or would go. */
static struct map_slot *slot_find(const struct map *map, uint64_t key)
{
    size_t at = home_slot(map, key);

    while (map->slots[at].value && map->slots[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return &map->slots[at];
}

void *map_get(const struct map *map, uint64_t key)
{
    return map->capacity ? slot_find(map, key)->value : NULL;
}

static void map_grow(struct map *map)
{
    struct map old = *map;

    map->capacity = old.capacity ? old.capacity * 2 : 64;
    map->slots = xcalloc(map->capacity, sizeof *map->slots);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].value)
            *slot_find(map, old.slots[i].key) = old.slots[i];
    xfree(old.slots);
}

void *map_put(struct map *map, uint64_t key, void *value)
{
    if (map->count * 2 >= map->capacity)
        map_grow(map);
    struct map_slot *slot = slot_find(map, key);
    void *old = slot->value;
    if (!old)
        map->count++;
    *slot = (struct map_slot){key, value};
    return old;
}

void *map_take(struct map *map, uint64_t key)
{
    size_t mask = map->capacity - 1;

    if (!map->capacity)
        return NULL;
    struct map_slot *hole = slot_find(map, key);
    void *old = hole->value;
    if (!old)
        return NULL;
    map->count--;
    /* Pull back what was pushed past the hole: no slot between an entry's home
     * and its place may be free. */
    size_t empty = (size_t)(hole - map->slots);
    for (size_t at = (empty + 1) & mask; map->slots[at].value;
         at = (at + 1) & mask) {
        size_t distance = (at - home_slot(map, map->slots[at].key)) & mask;
        if (distance >= ((at - empty) & mask)) {
            map->slots[empty] = map->slots[at];
            empty = at;
        }
    }
    map->slots[empty].value = NULL;
    return old;
}

void *map_next(const struct map *map, size_t *cursor)
{
    while (*cursor < map->capacity) {
        void *value = map->slots[(*cursor)++].value;
        if (value)
            return value;
    }
    return NULL;
}

void map_fini(struct map *map)
{
    xfree(map->slots);
    *map = (struct map){0};
}
