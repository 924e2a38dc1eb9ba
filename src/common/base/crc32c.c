/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/crc32c.h"

static uint32_t crc32c_portable(uint32_t crc, const unsigned char *p, size_t n)
{
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };

    for (; n; n--) {
        crc ^= *p++;
        crc = crc >> 4 ^ nibble[crc & 15];
        crc = crc >> 4 ^ nibble[crc & 15];
    }
    return crc;
}

#ifdef __x86_64__
typedef uint64_t word __attribute__((may_alias, aligned(1)));

__attribute__((target("crc32"))) static uint32_t
crc32c_sse42(uint32_t crc, const unsigned char *p, size_t n)
{
    uint64_t wide = crc;

    for (; n >= 64; n -= 64, p += 64) {
        const word *w = (const word *)p;

        wide = __builtin_ia32_crc32di(wide, w[0]);
        wide = __builtin_ia32_crc32di(wide, w[1]);
        wide = __builtin_ia32_crc32di(wide, w[2]);
        wide = __builtin_ia32_crc32di(wide, w[3]);
        wide = __builtin_ia32_crc32di(wide, w[4]);
        wide = __builtin_ia32_crc32di(wide, w[5]);
        wide = __builtin_ia32_crc32di(wide, w[6]);
        wide = __builtin_ia32_crc32di(wide, w[7]);
    }
    return crc32c_portable((uint32_t)wide, p, n);
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_sse42(~crc, data, bytes);
#endif
    return ~crc32c_portable(~crc, data, bytes);
}
