/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/change/size_sum.h"

#include "check.h"

/* A layer's weights and biases at widths of 64, 128 and 256, and a table. */
static const uint64_t first[] = {4096, 64, 4096, 64, 64000};
static const uint64_t second[] = {16384, 128, 16384, 128, 128000};
static const uint64_t third[] = {65536, 256, 65536, 256, 256000};

static bool find(uint64_t a, uint64_t b, uint64_t ranks, uint64_t *wanted)
{
    struct size_sums sums = {.first = first,
                             .second = second,
                             .wanted = third,
                             .count = 5,
                             .ranks = ranks};
    bool found = size_sum_find(&sums, a, b, wanted);
    uint64_t again;

    CHECK(size_sum_find(&sums, a, b, &again) == found);
    CHECK(!found || again == *wanted);
    return found;
}

TEST(neighbours_are_added)
{
    uint64_t wanted;

    CHECK(find(4160, 16512, 1, &wanted)); /* a weight and its bias */
    CHECK_UINT(wanted, 65792);
    CHECK(find(8320, 33024, 1, &wanted)); /* the layer: all but the table */
    CHECK_UINT(wanted, 131584);
    CHECK(find(68096 + 64, 144384 + 128, 1, &wanted)); /* the last three */
    CHECK_UINT(wanted, 65536 + 256 + 256000);
    CHECK(find(64000 + 4096, 128000 + 16384, 1, &wanted)); /* around the end */
    CHECK_UINT(wanted, 256000 + 65536);
}

TEST(bytes_and_shards_count_too)
{
    uint64_t wanted;

    CHECK(find(4160 * 4, 16512 * 4, 1, &wanted));
    CHECK_UINT(wanted, 65792 * 4);
    CHECK(find(8320 / 2, 33024 / 2, 2, &wanted));
    CHECK_UINT(wanted, 131584 / 2);
    CHECK(!find(8320 / 8, 33024 / 8, 2, &wanted));
}

TEST(other_numbers_are_no_sums)
{
    uint64_t wanted;

    CHECK(!find(4161, 16512, 1, &wanted));
    CHECK(!find(4160, 16511, 1, &wanted));
    CHECK(!find(64, 128, 1, &wanted)); /* by chance */
    CHECK(!find(UINT64_MAX, UINT64_MAX, 1, &wanted));
}
