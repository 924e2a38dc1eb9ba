/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost_memo.h"

#include <string.h>

#include "common/base/hash.h"

_Static_assert(sizeof(struct work) % sizeof(uint64_t) == 0,
               "struct work is hashed by words");

/* Over all bytes of WORK. Padding may differ between equal works, which costs a
 * second price and no more. */
static uint64_t work_hash(const struct work *work)
{
    uint64_t words[(sizeof *work / sizeof(uint64_t) + 1) / 2 * 2] = {0};

    memcpy(words, work, sizeof *work);
    return hash_words(words, sizeof words / sizeof *words);
}

void cost_memo_price(struct cost_memo *memo, const struct cost_image *image,
                     const struct cost_gpu *gpu, const struct work *work,
                     struct cost_answer *answer)
{
    uint64_t key = work_hash(work);
    struct cost_memo_slot *set = memo->slots[key & (COST_MEMO_SETS - 1)];
    struct cost_memo_slot *slot = set;

    while (slot < set + COST_MEMO_WAYS && slot->key != key)
        slot++;
    if (slot == set + COST_MEMO_WAYS) {
        slot = &set[memo->misses++ % COST_MEMO_WAYS];
        cost_price(image, gpu, work, &slot->answer);
        slot->key = key;
    }
    *answer = slot->answer;
}
