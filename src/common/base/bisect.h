/* SPDX-License-Identifier: Apache-2.0
 * Binary search. */
#ifndef MEMSIM_COMMON_BASE_BISECT_H
#define MEMSIM_COMMON_BASE_BISECT_H

#include <stdint.h>

/* Of the places I from 0 to COUNT the first one that is not BEFORE, an
 * expression in I that holds up to some place and from there on does not;
 * COUNT where it always holds:
 *
 *   uint64_t at = BISECT(i, list->count, list->all[i].rank < rank);
 */
#define BISECT(i, count, before)                                               \
    ({                                                                         \
        uint64_t bisect_low = 0, bisect_high = (count);                        \
        while (bisect_low < bisect_high) {                                     \
            uint64_t i = bisect_low + (bisect_high - bisect_low) / 2;          \
            if (before)                                                        \
                bisect_low = i + 1;                                            \
            else                                                               \
                bisect_high = i;                                               \
        }                                                                      \
        bisect_low;                                                            \
    })

#endif
