/* SPDX-License-Identifier: Apache-2.0
 * Finds the part of a sequence of operations that repeats once per layer.
 *
 * A sequence is given as marks: equal operations have equal marks. A region
 * [at, at + length) has the period P if mark[i] == mark[i + P] in all of it.
 * Where in a layer the region begins does not matter: it stays the same if any
 * P operations in a row are repeated or left out. */
#ifndef MEMSIM_MEMSIM_CHANGE_LAYER_PERIOD_H
#define MEMSIM_MEMSIM_CHANGE_LAYER_PERIOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAYER_PERIOD_MIN 4 /* operations of a layer that is guessed */

struct layer_region {
    size_t at, length, period; /* in operations */
};

/* Finds the longest region of [0, COUNT) in which something repeats LAYERS
 * (at least 2) times: less than a period more, at most one and a half less
 * (half of one, of less than 4 layers).
 * UNIT: the period is a multiple of it. False: there is none. */
bool layer_region_find(const uint64_t *marks, size_t count, uint32_t layers,
                       size_t unit, struct layer_region *region);

#define LAYER_REGIONS_MAX 256 /* of a step */

/* All such regions in [0, COUNT) that are a 20th of it and more, with
 * LAYER_PERIOD_MIN operations of a layer and more, in their order. Returns how
 * many. */
size_t layer_regions_find(const uint64_t *marks, size_t count, uint32_t layers,
                          struct layer_region *regions);

/* How often a layer repeats in MARKS where that is not known: the number that
 * most operations agree on, 3 at least; 0: nothing repeats. */
uint32_t layer_count_guess(const uint64_t *marks, size_t count);

#endif
