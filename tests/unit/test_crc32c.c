/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/crc32c.h"
#include "check.h"

/* Vectors of RFC 3720, appendix B.4. */
TEST(agrees_with_rfc_3720)
{
    unsigned char bytes[32];

    memset(bytes, 0, sizeof bytes);
    CHECK_UINT(crc32c(0, bytes, 32), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    CHECK_UINT(crc32c(0, bytes, 32), 0x62a8ab43);
    for (int i = 0; i < 32; i++)
        bytes[i] = (unsigned char)i;
    CHECK_UINT(crc32c(0, bytes, 32), 0x46dd794e);
    CHECK_UINT(crc32c(0, "123456789", 9), 0xe3069283);
}

TEST(continues)
{
    CHECK_UINT(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    CHECK_UINT(crc32c(7, "", 0), 7);
}
