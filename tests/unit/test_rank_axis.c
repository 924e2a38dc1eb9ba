/* SPDX-License-Identifier: Apache-2.0
 * Which of the ranks that run stands for another one. */
#include "common/trace/rank_axis.h"

#include "check.h"

static const struct rank_axis stages = {.stride = 8, .size = 4};
static const struct rank_axis experts = {.stride = 1, .size = 2};

TEST(without_axes_the_nearest_lower_one_stands)
{
    const uint32_t run[] = {2, 8, 31};

    CHECK_UINT(rank_axis_stand(NULL, 0, run, 3, 2), 2);
    CHECK_UINT(rank_axis_stand(NULL, 0, run, 3, 7), 2);
    CHECK_UINT(rank_axis_stand(NULL, 0, run, 3, 30), 8);
    CHECK_UINT(rank_axis_stand(NULL, 0, run, 3, 1), 2); /* none is lower */
}

TEST(one_with_the_same_places_stands)
{
    const uint32_t run[] = {0, 8, 16, 24, 31};

    CHECK_UINT(rank_axis_stand(&stages, 1, run, 5, 30), 24);
    CHECK_UINT(rank_axis_stand(&stages, 1, run, 5, 31), 31);
    CHECK_UINT(rank_axis_stand(&stages, 1, run, 5, 33), 0);
    CHECK_UINT(rank_axis_stand(&stages, 1, run, 5, 41), 8);
}

TEST(a_higher_one_stands_where_no_lower_one_is_alike)
{
    const uint32_t run[] = {0, 3};

    CHECK_UINT(rank_axis_stand(&experts, 1, run, 2, 1), 3);
    CHECK_UINT(rank_axis_stand(&experts, 1, run, 2, 5), 3);
}

TEST(with_none_alike_the_nearest_lower_one_stands)
{
    const uint32_t run[] = {2, 4};

    CHECK_UINT(rank_axis_stand(&experts, 1, run, 2, 3), 2);
    CHECK_UINT(rank_axis_stand(&experts, 1, run, 2, 1), 2);
}
