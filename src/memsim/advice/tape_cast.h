/* SPDX-License-Identifier: Apache-2.0
 * A recording as it would have been without autocast's cache of weights. */
#ifndef MEMSIM_MEMSIM_ADVICE_TAPE_CAST_H
#define MEMSIM_MEMSIM_ADVICE_TAPE_CAST_H

#include "memsim/advice/tape.h"

/* Makes *TO a copy of FROM as with autocast(cache_enabled=False): the copy of a
 * weight that only the cache kept is freed when its module is left, and made
 * again when that is called again; one that backward needs is made by each
 * call. Returns the bytes of copies that are freed earlier. */
uint64_t tape_uncache_casts(struct tape *to, const struct tape *from);

#endif
