/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/result/prices.h"

#include "check.h"

static double all_of(const char *text)
{
    struct prices prices;
    struct err err = {""};
    double all = prices_read(&prices, text, &err) ? -1 : prices.all;

    prices_fini(&prices);
    return all;
}

TEST(a_price_is_of_a_gpu_or_a_node)
{
    CHECK_NEAR(all_of("2.99"), 2.99, 1e-12);
    CHECK_NEAR(all_of("98.5/8"), 12.3125, 1e-12);
    const char *const bad[] = {"0",   "-1",   "nan", "inf",   "1e999", "98.5/",
                               "1/0", "1/2.5", "1/x", "1/inf", "/no/such"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(all_of(bad[i]) < 0);
}

/* Runs of 5 minutes on 1 to 64 nodes of 8 GPUs, at $98.5 for a node-hour. */
TEST(a_published_table_of_costs)
{
    static const unsigned runs[] = {65, 120, 127, 149, 158, 111, 78};
    double hours = 0;

    for (unsigned i = 0; i < sizeof runs / sizeof *runs; i++)
        hours += runs[i] * gpu_hours_of(300, 1, 8u << i);
    CHECK_NEAR(hours * all_of("98.5/8"), 107340, 1e-4);
}

TEST(hours_of_tokens)
{
    CHECK_NEAR(gpu_hours_of(1e9, 1e6, 16), 1000.0 / 3600 * 16, 1e-12);
    CHECK(gpu_hours_of(1e9, 0, 16) == 0);
}
