/* SPDX-License-Identifier: Apache-2.0
 * A hash table from 64-bit keys to pointers. For the programs: it allocates
 * with xmalloc. */
#ifndef MEMSIM_COMMON_BASE_MAP_H
#define MEMSIM_COMMON_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

/* Zeroed, it is empty. */
struct map {
    struct map_slot *slots;
    size_t count, capacity;
};

/* The value of KEY, NULL where there is none. */
void *map_get(const struct map *map, uint64_t key);

/* Sets KEY to VALUE (not NULL); returns the value it had, or NULL. */
void *map_put(struct map *map, uint64_t key, void *value);

/* Removes KEY; returns the value it had, or NULL. */
void *map_take(struct map *map, uint64_t key);

/* The next value in no useful order; *CURSOR starts at 0. NULL at the end. The
 * map must not change in between. */
void *map_next(const struct map *map, size_t *cursor);

/* Forgets all keys; the values are the caller's. */
void map_fini(struct map *map);

#endif
