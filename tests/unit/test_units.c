/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/units.h"
#include "check.h"

static uint64_t parsed(const char *text)
{
    uint64_t bytes = 12345;

    return units_parse_bytes(text, &bytes) ? UINT64_MAX : bytes;
}

TEST(parses_what_people_write)
{
    CHECK_UINT(parsed("85899345920"), 80 * GIB);
    CHECK_UINT(parsed("80GiB"), 80 * GIB);
    CHECK_UINT(parsed("80GB"), UINT64_C(80000000000));
    CHECK_UINT(parsed("1.5 GiB"), 3 * GIB / 2);
    CHECK_UINT(parsed("512M"), 512 * MIB);
    CHECK_UINT(parsed("512m"), 512 * MIB);
    CHECK_UINT(parsed("0"), 0);
    CHECK_UINT(parsed("18446744073709551614"), UINT64_MAX - 1);
}

TEST(refuses_what_is_no_size)
{
    const char *bad[] = {"",    "GiB", "-1",     "1 parsec",   "1e30GiB", "nan",
                         "0x1", " 1",  "1GiB x", "99999999TiB"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parsed(bad[i]) != UINT64_MAX)
            CHECK_FAIL("'%s' was accepted", bad[i]);
}

TEST(formats_for_people)
{
    char text[16];

    CHECK_STR(units_format_bytes(0, text, sizeof text), "0 B");
    CHECK_STR(units_format_bytes(1023, text, sizeof text), "1023 B");
    CHECK_STR(units_format_bytes(1024, text, sizeof text), "1.00 KiB");
    CHECK_STR(units_format_bytes(GIB - 1, text, sizeof text), "1.00 GiB");
    CHECK_STR(units_format_bytes(UINT64_C(47760000000), text, sizeof text),
              "44.48 GiB");
    CHECK_STR(units_format_bytes(UINT64_MAX, text, sizeof text),
              "16384.00 PiB");
}
