/* SPDX-License-Identifier: Apache-2.0
 * A map from addresses to small numbers, for recordings that know blocks by
 * address only. A call is O(1) on average. */
#ifndef MEMSIM_MEMSIM_ADDRESS_MAP_H
#define MEMSIM_MEMSIM_ADDRESS_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_map_slot {
    uint64_t address; /* 0: empty */
    uint64_t value;
};

struct address_map { /* zeroed: empty */
    struct address_map_slot *slots;
    size_t count, capacity; /* a power of two */
};

/* The value at ADDRESS, to be read or changed; NULL where there is none. It is
 * good until the map changes. ADDRESS is never 0. */
uint64_t *address_map_find(const struct address_map *map, uint64_t address);

/* Sets ADDRESS to VALUE. Returns false where it had a value, which stays. */
bool address_map_add(struct address_map *map, uint64_t address, uint64_t value);

/* Takes ADDRESS away; *VALUE, unless NULL, is what it had. Returns false where
 * it had none. */
bool address_map_remove(struct address_map *map, uint64_t address,
                        uint64_t *value);

void address_map_fini(struct address_map *map);

#endif
