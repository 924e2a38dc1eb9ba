/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/study/options.h"

#include "check.h"

static void check_refused(const struct study_options *options, const char *why)
{
    struct err err = {""};

    CHECK(study_options_check(options, &err) == -1);
    if (!strstr(err.text, why))
        CHECK_STR(err.text, why);
}

TEST(no_options_are_fine)
{
    const struct study_options none = {0};
    struct err err = {""};
    double quantile, factor;

    CHECK(!study_options_check(&none, &err));
    CHECK(!study_quantile(&none, &quantile, &err) && quantile == 0);
    CHECK(!study_host_factor(&none, &factor, &err) && factor == 1);
    CHECK_STR(err.text, "");
}

TEST(each_text_is_read)
{
    const struct {
        struct study_options options;
        const char *why;
    } bad[] = {
        {{.quantile = "1", .cluster = "x"}, "--quantile: '1' is no number"},
        {{.quantile = "0.9x", .cluster = "x"}, "--quantile: '0.9x'"},
        {{.host_speed = "-1"}, "--host-speed: '-1' is no number from 0"},
        {{.host_speed = ""}, "--host-speed: ''"},
        {{.scale = "foo=2"}, "no family is called 'foo'"},
        {{.delay = "x=2"}, "'x=2' is not an amount that is known"},
        {{.delay_lib = "/nowhere.so"}, "--delay-lib: /nowhere.so: No such"},
        {{.stragglers = "all"}, "--stragglers"},
        {{.change = "foo"}, "--change"},
        {{.link = "inter=2x"}, "need --cluster"},
        {{.placement = "block"}, "need --cluster"},
        {{.fail_slower = "5"}, "--fail-slower and --base need each other"},
        {{.base = "/nowhere.json", .fail_slower = "5"}, "/nowhere.json"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_refused(&bad[i].options, bad[i].why);
}

TEST(a_host_of_no_speed_takes_no_time)
{
    struct study_options options = {.host_speed = "0"};
    struct err err = {""};
    double factor;

    CHECK(!study_host_factor(&options, &factor, &err) && factor == 0);
    options.host_speed = "4";
    CHECK(!study_host_factor(&options, &factor, &err) && factor == .25);
}
