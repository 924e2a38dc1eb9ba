/* SPDX-License-Identifier: Apache-2.0 */
#include "common/catalogue/capability.h"

#include "check.h"

static const char *again(const char *text)
{
    static char out[128];
    struct capability_set set;

    return capability_parse(text, &set) ? "refused"
                                        : capability_text(&set, out, sizeof out);
}

TEST(a_set_as_text_is_read_back)
{
    CHECK_STR(again(""), "");
    CHECK_STR(again("7.5-9.9,12.0-15.9"), "7.5-9.9,12.0-15.9");
    CHECK_STR(again("7.0-7.9,8.0-8.9"), "7.0-8.9");
    CHECK_STR(again("0.0-15.9"), "0.0-15.9");
    CHECK_STR(again("7.5"), "refused");
    CHECK_STR(again("7.5-8.0;"), "refused");
}

TEST(a_set_has_what_was_added)
{
    struct capability_set set = {{0}};

    CHECK(capability_is_empty(&set));
    capability_add(&set, 75, 79);
    capability_add(&set, 120, CAPABILITIES + 100);
    CHECK(!capability_is_empty(&set));
    CHECK(!capability_has(&set, 7, 4) && capability_has(&set, 7, 5));
    CHECK(capability_has(&set, 7, 9) && !capability_has(&set, 8, 0));
    CHECK(capability_has(&set, 12, 0) && capability_has(&set, 15, 9));
    CHECK(!capability_has(&set, 16, 0) && !capability_has(&set, 7, 10));
}
