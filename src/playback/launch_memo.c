/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/launch_memo.h"

#include <stddef.h>
#include <string.h>

#include "common/base/hash.h"

/* Of a launch: all but its device and its stream, on which no price depends. */
#define FIRST (offsetof(struct trace_launch, grid_x_y) / sizeof(uint64_t))
#define WORDS (sizeof(struct trace_launch) / sizeof(uint64_t) - FIRST)

_Static_assert(FIRST == 3, "a launch's name, device and stream are first");

uint64_t launch_memo_key(const struct op *op)
{
    uint64_t words[(1 + WORDS + 1) / 2 * 2] = {op->name};

    memcpy(words + 1, op->fields + FIRST, WORDS * sizeof *words);
    return hash_words(words, sizeof words / sizeof *words);
}

const struct price *launch_memo_find(const struct launch_memo *m, uint64_t key)
{
    const struct launch_memo_slot *set = m->slots[key & (LAUNCH_MEMO_SETS - 1)];

    for (unsigned i = 0; i < LAUNCH_MEMO_WAYS; i++)
        if (set[i].key == key)
            return &set[i].price;
    return NULL;
}

void launch_memo_put(struct launch_memo *m, uint64_t key,
                     const struct price *price)
{
    struct launch_memo_slot *set = m->slots[key & (LAUNCH_MEMO_SETS - 1)];

    set[m->misses++ % LAUNCH_MEMO_WAYS] =
        (struct launch_memo_slot){key, *price};
}
