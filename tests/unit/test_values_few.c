/* SPDX-License-Identifier: Apache-2.0
 * Notes of masks by address. */
#include "check.h"
#include "capture/core/memory/values_few.h"

struct values_few values_few[VALUES_FEW];

#define BLOCK 512

/* The next block after ADDRESS whose notes are in the same pair. */
static uint64_t same_pair(uint64_t address)
{
    uint64_t next = address;

    do
        next += BLOCK;
    while (values_few_at(next) != values_few_at(address));
    return next;
}

static bool holds(uint64_t address, uint64_t count)
{
    struct few few;

    return values_few_get(address, BLOCK, &few) && few.count == count;
}

TEST(two_masks_of_one_place_are_both_known)
{
    uint64_t a = UINT64_C(0x7f0000000000), b = same_pair(a), c = same_pair(b);

    values_few_set(a, BLOCK, (struct few){.count = 1});
    values_few_set(b, BLOCK, (struct few){.count = 2});
    CHECK(holds(a, 1) && holds(b, 2));
    values_few_set(a, BLOCK, (struct few){.count = 3});
    CHECK(holds(a, 3) && holds(b, 2));
    values_few_set(c, BLOCK, (struct few){.count = 4});
    CHECK(holds(c, 4) && holds(b, 2) && !holds(a, 3));
    values_few_end(b);
    CHECK(holds(c, 4) && !holds(b, 2));
    values_few_end(c);
    CHECK(!holds(c, 4));
}
