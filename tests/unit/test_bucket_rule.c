/* SPDX-License-Identifier: Apache-2.0
 * DDP's buckets: the cut of gradients, and the rule behind a cut. */
#include "../check.h"
#include "memsim/change/bucket_rule.h"

#define MIB (UINT64_C(1) << 20)

/* 4 MiB each, but for a first one of 4 KiB. */
static const uint64_t sizes[12] = {1024, MIB, MIB, MIB, MIB, MIB,
                                   MIB,  MIB, MIB, MIB, MIB, MIB};
static const struct bucket_gradients twelve = {sizes, 12, 4};

TEST(the_default_cuts_at_1_and_25_mib)
{
    struct bucket_rule rule = {MIB, 25 * MIB};
    size_t ends[12];

    /* 4 KiB and 4 MiB reach 1 MiB; seven of 4 MiB reach 25; three are left */
    CHECK(bucket_cut(&rule, &twelve, ends) == 3);
    CHECK(ends[0] == 2 && ends[1] == 9 && ends[2] == 12);
    CHECK(bucket_rule_find(&rule, &twelve, ends, 3));
    CHECK(rule.first == MIB && rule.others == 25 * MIB);
}

TEST(before_the_order_is_known_all_are_one)
{
    struct bucket_rule rule = {UINT64_MAX, UINT64_MAX};
    size_t ends[12];

    CHECK(bucket_cut(&rule, &twelve, ends) == 1);
    CHECK(ends[0] == 12);
}

/* A cap of 7 MiB alone: 4 KiB, 4 and 4 MiB; then two of 4 MiB each. Caps from
 * 5 MiB to 8 would make the same. */
TEST(a_cap_is_known_if_it_is_the_only_whole_one)
{
    static const uint64_t small[] = {MIB / 4, MIB / 4, MIB / 4,
                                     MIB / 4, MIB / 4, MIB / 4};
    const struct bucket_gradients six = {small, 6, 4};
    struct bucket_rule rule = {7 * MIB, 7 * MIB};
    size_t ends[12];

    CHECK(bucket_cut(&rule, &twelve, ends) == 6);
    CHECK(ends[0] == 3 && ends[1] == 5 && ends[5] == 12);
    CHECK(!bucket_rule_find(&rule, &twelve, ends, 6));
    rule = (struct bucket_rule){2 * MIB, 2 * MIB};
    CHECK(bucket_cut(&rule, &six, ends) == 3);
    CHECK(bucket_rule_find(&rule, &six, ends, 3));
    CHECK(rule.first == 2 * MIB && rule.others == 2 * MIB);
}

/* No limit makes a first bucket of 8 MiB, and others of 4. */
TEST(other_cuts_have_no_rule)
{
    const size_t ends[] = {3, 4, 12};
    struct bucket_rule rule;

    CHECK(!bucket_rule_find(&rule, &twelve, ends, 3));
}
