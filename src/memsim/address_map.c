/* SPDX-License-Identifier: Apache-2.0
 * Open addressing with linear probing; a removal closes its gap. */
#include "memsim/address_map.h"

#include <stdlib.h>

#include "common/xmalloc.h"

static size_t home(const struct address_map *map, uint64_t address)
{
    /* Fibonacci hashing: the low bits of an address are all zero. */
    return (size_t)((address * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
           (map->capacity - 1);
}

static size_t probe(const struct address_map *map, uint64_t address)
{
    size_t i = home(map, address);

    while (map->slots[i].address && map->slots[i].address != address)
        i = (i + 1) & (map->capacity - 1);
    return i;
}

static void grow(struct address_map *map)
{
    struct address_map old = *map;

    map->capacity = old.capacity ? old.capacity * 2 : 1024;
    map->slots = xcalloc(map->capacity, sizeof *map->slots);
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].address)
            map->slots[probe(map, old.slots[i].address)] = old.slots[i];
    free(old.slots);
}

uint64_t *address_map_find(const struct address_map *map, uint64_t address)
{
    if (!map->count)
        return NULL;
    struct address_map_slot *slot = &map->slots[probe(map, address)];
    return slot->address ? &slot->value : NULL;
}

bool address_map_add(struct address_map *map, uint64_t address, uint64_t value)
{
    if (map->count * 2 >= map->capacity)
        grow(map);
    struct address_map_slot *slot = &map->slots[probe(map, address)];
    if (slot->address)
        return false;
    *slot = (struct address_map_slot){address, value};
    map->count++;
    return true;
}

/* Moves back what probing would no longer reach over the gap at I. */
static void close_gap(struct address_map *map, size_t i)
{
    size_t mask = map->capacity - 1;

    for (size_t j = (i + 1) & mask; map->slots[j].address; j = (j + 1) & mask) {
        size_t from_home = (j - home(map, map->slots[j].address)) & mask;

        if (from_home < ((j - i) & mask))
            continue;
        map->slots[i] = map->slots[j];
        i = j;
    }
    map->slots[i].address = 0;
}

bool address_map_remove(struct address_map *map, uint64_t address,
                        uint64_t *value)
{
    if (!map->count)
        return false;
    size_t i = probe(map, address);
    if (!map->slots[i].address)
        return false;
    if (value)
        *value = map->slots[i].value;
    close_gap(map, i);
    map->count--;
    return true;
}

void address_map_fini(struct address_map *map)
{
    free(map->slots);
    *map = (struct address_map){0};
}
