/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/text_clean.h"

#include "check.h"
#include "common/base/err.h"

TEST(tells_characters_from_other_bytes)
{
    CHECK_UINT(text_character("a"), 1);
    CHECK_UINT(text_character(""), 0);
    CHECK_UINT(text_character("\xc3\xa9"), 2);
    CHECK_UINT(text_character("\xe2\x82\xac"), 3);
    CHECK_UINT(text_character("\xf0\x9f\x98\x80"), 4);
    const char *const bad[] = {"\xff",
                               "\x80",
                               "\xc0\x80",
                               "\xc1\xbf",
                               "\xc3",
                               "\xe0\x9f\xbf",
                               "\xed\xa0\x80",
                               "\xe2\x82",
                               "\xf0\x8f\xbf\xbf",
                               "\xf4\x90\x80\x80",
                               "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (text_character(bad[i]))
            CHECK_FAIL("case %zu is no UTF-8", i);
}

TEST(replaces_what_is_no_text)
{
    char text[] = "a\xff\xc3\xa9\x1b[1m\xe2\x82\n", same[sizeof text];

    strcpy(same, text);
    text_make_utf8(text);
    CHECK_STR(text, "a?\xc3\xa9\x1b[1m??\n");
    text_make_printable(same);
    CHECK_STR(same, "a?\xc3\xa9?[1m???");
    char c1[] = "\xc2\x9b"
                "31m";
    text_make_printable(c1);
    CHECK_STR(c1, "??31m");
}

TEST(quotes)
{
    char out[64];

    text_quote(out, sizeof out, "a\x1b[2J\xff\xc2\x9b\xe2\x82\xac");
    CHECK_STR(out, "a\\x1b[2J\\xff\\xc2\\x9b\xe2\x82\xac");
    /* what turns the direction of the text around it */
    text_quote(out, sizeof out, "a\xe2\x80\xae" "b\xe2\x81\xa6");
    CHECK_STR(out, "a\\xe2\\x80\\xae" "b\\xe2\\x81\\xa6");
}

TEST(ends_a_cut_text_behind_a_word)
{
    const char *const cases[][2] = {
        {"one two three four five", "one two three..."},
        {"one two, three-and-four", "one two..."},
        {"one, two-three-and-four", "one..."},
        {"no-space-in-it-at-all-is", "..."},
        {"one two three f\xc3\xa9\xc3\xa9 six", "one two three..."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[20];

        snprintf(text, sizeof text, "%s", cases[i][0]);
        text_cut_at_word(text, sizeof text);
        CHECK_STR(text, cases[i][1]);
    }
}

/* Any length, any size: it fits, ends as the text does, and is UTF-8. */
TEST(cuts_the_middle)
{
    char text[600], out[256];

    for (size_t length = 0; length < 590; length += 7)
        for (size_t size = 32; size <= sizeof out; size += 5) {
            for (size_t i = 0; i < length; i++)
                text[i] = "\xc3\xa9\x1b"
                          "ab"[i % 5];
            strcpy(text + length, ": no such");
            memset(out, 'x', sizeof out);
            text_quote(out, size, text);
            size_t n = strlen(out);
            CHECK(n < size);
            CHECK(!strcmp(out + n - 9, ": no such"));
            for (const char *p = out; *p; p += text_character(p))
                if (!text_character(p)) {
                    CHECK_FAIL("no UTF-8 at %zu of %zu", length, size);
                    break;
                }
        }
}

TEST(an_error_keeps_its_reason)
{
    char path[3000];
    struct err err = {""};

    memset(path, 'p', sizeof path);
    path[0] = '/';
    path[sizeof path - 1] = '\0';
    err_set(&err, "%s: Permission denied", path);
    CHECK(!strncmp(err.text, "/ppp", 4));
    CHECK(strstr(err.text, "ppp: Permission denied"));
    CHECK(strstr(err.text, "p...p"));
}
