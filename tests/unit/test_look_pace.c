/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/torch/look_pace.h"

#include <math.h>

#include "check.h"

#define MS UINT64_C(1000000)

/* The looks in ROUNDS of STEP_NS each, from round FIRST on; a look costs
 * COST_NS. */
static unsigned looks(unsigned rounds, unsigned first, uint64_t step_ns,
                      uint64_t cost_ns)
{
    struct look_pace p = {0};
    uint64_t now_ns = 1000 * MS;
    unsigned count = 0;

    for (unsigned i = 1; i <= rounds; i++) {
        now_ns += step_ns;
        if (!look_pace_round(&p, now_ns))
            continue;
        now_ns += cost_ns;
        look_pace_looked(&p, now_ns, cost_ns);
        count += i >= first;
    }
    return count;
}

TEST(cheap_looks_are_taken_in_each_round)
{
    CHECK_UINT(looks(1000, 1, 10 * MS, MS / 20), 1000);
}

TEST(dear_looks_take_one_percent_of_a_long_run)
{
    CHECK_UINT(looks(100000, 1001, 10 * MS, MS), 99000 / 10);
}

TEST(a_short_run_has_looks_whatever_they_cost)
{
    CHECK_UINT(looks(16, 1, MS, 1000 * MS), 16);
    for (unsigned rounds = 14; rounds < 10000; rounds += rounds / 3) {
        unsigned all = looks(rounds, 1, MS, 1000000 * MS);
        CHECK(looks(rounds, rounds / 2, MS, 1000000 * MS) >= 8);
        CHECK(rounds < 16 || all <= 16 + 16 * log(rounds / 16.0) + 1);
    }
}

/* A thread that waits a second for a processor at each look, on a busy machine:
 * the looks are as many. */
TEST(waiting_for_the_processor_is_no_cost)
{
    struct look_pace p = {0};
    uint64_t now_ns = 0;

    for (unsigned i = 1; i <= 200; i++) {
        now_ns += 10 * MS;
        CHECK(look_pace_round(&p, now_ns));
        now_ns += 1000 * MS;
        look_pace_looked(&p, now_ns, MS / 20);
    }
}
