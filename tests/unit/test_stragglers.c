/* SPDX-License-Identifier: Apache-2.0 */
#include "playback/stragglers.h"

#include <math.h>
#include <string.h>

#include "check.h"

#define MANY 16384

static struct stragglers parsed(const char *text)
{
    struct stragglers s;
    struct err err = {""};

    CHECK(stragglers_parse(text, &s, &err) == 0);
    return s;
}

TEST(options_are_read)
{
    struct stragglers s = parsed("2%");
    CHECK(fabs(s.spread - 0.02) < 1e-12 && s.seed == 0);
    s = parsed("0.5%,7");
    CHECK(fabs(s.spread - 0.005) < 1e-12 && s.seed == 7);
}

TEST(other_options_are_errors)
{
    const char *bad[] = {"",      "2",    "%",      "0%",   "-1%", "101%",
                         "nan%",  "inf%", "2%,",    "2%,x", "2%x", "2%,-1",
                         "2%,1x", "x%",   "2%,99999999999999999999"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct stragglers s;
        struct err err = {""};

        CHECK(stragglers_parse(bad[i], &s, &err) == -1);
        CHECK(strstr(err.text, "--stragglers") != NULL);
    }
}

TEST(speeds_have_the_spread_asked_for)
{
    struct stragglers s = {.spread = 0.02, .seed = 1};
    double sum = 0, squares = 0;

    for (uint32_t r = 0; r < MANY; r++) {
        double z = log(straggler_factor(&s, r)) / s.spread;
        sum += z;
        squares += z * z;
    }
    CHECK(fabs(sum / MANY) < 0.03);
    CHECK(fabs(sqrt(squares / MANY) - 1) < 0.03);
}

TEST(a_rank_has_its_gpu_whatever_others_do)
{
    struct stragglers s = {.spread = 0.02, .seed = 1}, other = {0.02, 2};

    CHECK(straggler_factor(&s, 5) == straggler_factor(&s, 5));
    CHECK(straggler_factor(&s, 5) != straggler_factor(&s, 6));
    CHECK(straggler_factor(&s, 5) != straggler_factor(&other, 5));
}

TEST(a_class_has_its_slowest_gpu)
{
    struct stragglers s = {.spread = 0.02};
    struct rank_set ranks = {.range_count = 0};
    double most = 0;

    CHECK(stragglers_slowest(&s, &ranks) == 1);
    for (uint32_t r = 0; r < 100; r++) {
        rank_set_add(&ranks, r);
        most = fmax(most, straggler_factor(&s, r));
    }
    CHECK(stragglers_slowest(&s, &ranks) == most && most > 1.02);
    rank_set_fini(&ranks);
}
