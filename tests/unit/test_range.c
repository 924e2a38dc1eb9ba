/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/range.h"

#include "check.h"

TEST(a_range_grows_as_long_as_its_stride_holds)
{
    struct range r = {0};

    CHECK(range_extend(&r, 7));
    CHECK_UINT(r.count, 1);
    CHECK(range_extend(&r, 5) && range_extend(&r, 3) && range_extend(&r, 1));
    CHECK(!range_extend(&r, 0));
    CHECK_UINT(r.count, 4);
    CHECK_UINT(range_at(&r, 0), 7);
    CHECK_UINT(range_at(&r, 3), 1);
}

/* Every list comes back, whatever is in it. */
TEST(lists_come_back)
{
    for (unsigned seed = 1; seed < 200; seed++) {
        uint32_t list[50], back[50], at = 0, n = 0;
        struct range ranges[50] = {{0}};

        srand(seed);
        for (int i = 0; i < 50; i++)
            list[i] = (uint32_t)rand() % (seed % 5 ? 4 : 1u << 31);
        for (int i = 0; i < 50; i++)
            if (!range_extend(&ranges[n], list[i]))
                range_extend(&ranges[++n], list[i]);
        for (uint32_t i = 0; i <= n; i++)
            for (uint32_t k = 0; k < ranges[i].count; k++)
                back[at++] = range_at(&ranges[i], k);
        CHECK_UINT(at, 50);
        CHECK(!memcmp(list, back, sizeof list));
    }
}
