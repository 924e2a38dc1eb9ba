/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cost/cost_memo.h"

#include <string.h>

_Static_assert(sizeof(struct work) % sizeof(uint64_t) == 0,
               "struct work is hashed by words");

static uint64_t fold(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Over all bytes of WORK: a sum of products of two words each, which do not
 * wait for each other. Padding may differ between equal works, which costs a
 * second price and no more. */
static uint64_t work_hash(const struct work *work)
{
    uint64_t words[(sizeof *work / sizeof(uint64_t) + 1) / 2 * 2] = {0};
    uint64_t a = UINT64_C(0x9e3779b97f4a7c15), b = UINT64_C(0xd6e8feb86659fd93);
    uint64_t hash = 0;

    memcpy(words, work, sizeof *work);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i += 2) {
        hash += fold(words[i] ^ a, words[i + 1] ^ b);
        a += UINT64_C(0x243f6a8885a308d3);
        b += UINT64_C(0x13198a2e03707344);
    }
    hash = fold(hash, a);
    return hash ? hash : 1;
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
