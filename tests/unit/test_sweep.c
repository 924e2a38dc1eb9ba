/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/run/sweep.h"

#include "check.h"
#include "memsim/run/batch.h"

#define PARSE(s, ...)                                                          \
    sweep_parse(s, (char *[]){__VA_ARGS__},                                    \
                sizeof((char *[]){__VA_ARGS__}) / sizeof(char *), &err)

TEST(the_last_axis_changes_fastest)
{
    struct sweep s;
    struct err err = {""};

    CHECK(!PARSE(&s, "batch=1,2,4", "ckpt=on,off"));
    CHECK_UINT(s.combinations, 6);
    CHECK_STR(sweep_value(&s, 0, 0), "1");
    CHECK_STR(sweep_value(&s, 0, 1), "on");
    CHECK_STR(sweep_value(&s, 1, 0), "1");
    CHECK_STR(sweep_value(&s, 1, 1), "off");
    CHECK_STR(sweep_value(&s, 5, 0), "4");
    CHECK_STR(sweep_value(&s, 5, 1), "off");
    sweep_fini(&s);
}

TEST(places_are_filled_and_other_braces_stay)
{
    char *command[] = {"sh", "--b={b}{b}", "{}", "{other}", "{", NULL};
    struct sweep s;
    struct err err = {""};

    CHECK(!PARSE(&s, "b=1,{b}"));
    char **made = sweep_command(&s, 1, command);
    CHECK_STR(made[1], "--b={b}{b}");
    CHECK_STR(made[2], "{}");
    CHECK_STR(made[3], "{other}");
    CHECK_STR(made[4], "{");
    batch_command_free(made);
    made = sweep_command(&s, 0, command);
    CHECK_STR(made[1], "--b=11");
    batch_command_free(made);
    sweep_fini(&s);
}

TEST(a_value_may_have_a_comma_or_be_empty)
{
    struct sweep s;
    struct err err = {""};

    CHECK(!PARSE(&s, "a=x\\,y,,z\\\\"));
    CHECK_UINT(s.combinations, 3);
    CHECK_STR(sweep_value(&s, 0, 0), "x,y");
    CHECK_STR(sweep_value(&s, 1, 0), "");
    CHECK_STR(sweep_value(&s, 2, 0), "z\\");
    sweep_fini(&s);
}

TEST(what_is_no_axis_is_refused)
{
    struct sweep s;
    struct err err = {""};

    CHECK(PARSE(&s, "batch") == -1);
    CHECK(PARSE(&s, "=1") == -1);
    CHECK(PARSE(&s, "a b=1") == -1);
    err.text[0] = '\0';
    CHECK(PARSE(&s, "a=1", "a=2") == -1);
    CHECK(strstr(err.text, "twice") != NULL);
}

TEST(every_name_has_a_place)
{
    char *with[] = {"python", "--x", "{x}", NULL};
    char *without[] = {"python", "x", NULL};
    struct sweep s;
    struct err err = {""};

    CHECK(!PARSE(&s, "x=1", "gpu=l4"));
    CHECK(!sweep_check(&s, with, NULL, &err));
    CHECK(sweep_check(&s, without, NULL, &err) == -1);
    CHECK(strstr(err.text, "no {x} in the command") != NULL);
    sweep_fini(&s);
}
