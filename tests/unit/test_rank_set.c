/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/rank_set.h"

#include <stdlib.h>

#include "check.h"

#define LIMIT 4000

/* The text of what TEXT says. */
static void check_text(const char *text, const char *expected, uint32_t count)
{
    struct rank_set set;
    struct err err = {""};

    CHECK(rank_set_parse(&set, text, LIMIT, "--ranks", &err) == 0);
    char *again = rank_set_text(&set);
    CHECK_STR(again, expected);
    CHECK_UINT(set.count, count);
    free(again);
    rank_set_fini(&set);
}

TEST(sets_are_written_as_short_as_they_can_be_read)
{
    check_text("7", "7", 1);
    check_text("0-127,130", "0-127,130", 129);
    check_text("0,8,16,24", "0-24:8", 4);
    check_text("0-24:8", "0-24:8", 4);
    check_text("0,2,3,4", "0,2-4", 4);
    check_text("0,5", "0,5", 2);
    check_text("9,3,4,3,5", "3-5,9", 4);
    check_text("0-6:2,1-7:2", "0-7", 8);
    check_text("0-5:3", "0,3", 2);
}

TEST(what_is_no_list_is_refused)
{
    static const char *const bad[] = {"",    ",",     "1,",   "a",     "1-",
                                      "3-1", "0-8:0", "4000", "1 - 2", "0-4:",
                                      "-1",  "1-2-3", "1;2"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct rank_set set;
        struct err err = {""};
        CHECK(rank_set_parse(&set, bad[i], LIMIT, "--ranks", &err) == -1);
        CHECK(!strncmp(err.text, "--ranks: '", 10));
    }
}

TEST(a_set_has_what_was_added)
{
    for (unsigned seed = 1; seed < 200; seed++) {
        struct rank_set a = {.count = 0}, b = {.count = 0};
        bool in[300] = {false};
        uint32_t count = 0, found, seen = 0;

        srand(seed);
        for (uint32_t r = 0; r < 300; r++) {
            bool first = rand() % (int)(seed % 7 + 1) == 0;
            bool second = r % (seed % 5 + 2) == 0;
            if (first)
                rank_set_add(&a, r);
            if (second)
                rank_set_add(&b, r);
            in[r] = first || second;
            count += in[r];
        }
        rank_set_merge(&a, &b);
        CHECK_UINT(a.count, count);
        for (uint32_t r = 0; r < 300; r++)
            CHECK(rank_set_has(&a, r) == in[r]);
        for (uint32_t r = 0; rank_set_next(&a, r, &found); r = found + 1)
            seen++;
        CHECK_UINT(seen, count);
        rank_set_fini(&a);
        rank_set_fini(&b);
    }
}
