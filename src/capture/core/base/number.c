/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/base/number.h"

#include <string.h>

uint32_t number_bytes(enum number_type type)
{
    static const unsigned char bytes[16] = {
        [NUMBER_U8] = 1,   [NUMBER_I8] = 1,  [NUMBER_I16] = 2,
        [NUMBER_I32] = 4,  [NUMBER_I64] = 8, [NUMBER_F16] = 2,
        [NUMBER_F32] = 4,  [NUMBER_F64] = 8, [NUMBER_BOOL] = 1,
        [NUMBER_BF16] = 2,
    };

    return type < sizeof bytes ? bytes[type] : 0;
}

bool number_is_float(enum number_type type)
{
    return type == NUMBER_F16 || type == NUMBER_F32 || type == NUMBER_F64 ||
           type == NUMBER_BF16;
}

enum number_type number_opmath(enum number_type type)
{
    return type == NUMBER_F16 || type == NUMBER_BF16 ? NUMBER_F32 : type;
}

static float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t bfloat_bits(long double value)
{
    float f = (float)value;
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    if (f != f)
        return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define LOAD(type)                                                             \
    ({                                                                         \
        type value_;                                                           \
        memcpy(&value_, from, sizeof value_);                                  \
        value_;                                                                \
    })

long double number_load(enum number_type type, const void *from)
{
    switch (type) {
    case NUMBER_U8:
        return LOAD(uint8_t);
    case NUMBER_I8:
        return LOAD(int8_t);
    case NUMBER_I16:
        return LOAD(int16_t);
    case NUMBER_I32:
        return LOAD(int32_t);
    case NUMBER_I64:
        return LOAD(int64_t);
    case NUMBER_F16:
        return LOAD(_Float16);
    case NUMBER_F32:
        return LOAD(float);
    case NUMBER_F64:
        return LOAD(double);
    case NUMBER_BOOL:
        return LOAD(uint8_t) != 0;
    case NUMBER_BF16:
        return float_of_bits((uint32_t)LOAD(uint16_t) << 16);
    case NUMBER_NONE:
        break;
    }
    return 0;
}

/* Sums and differences of two integers wrap. What is farther out of range, a
 * floating number, is undefined on the device too: here it is 0. */
static int64_t integer_of(long double value)
{
    if (value >= -0x1p63L && value < 0x1p63L)
        return (int64_t)value;
    if (value >= 0x1p63L && value < 0x1p64L)
        return (int64_t)(uint64_t)value;
    return value >= -0x1p64L && value < 0 ? (int64_t)(value + 0x1p64L) : 0;
}

#define STORE(type, value)                                                     \
    ({                                                                         \
        type value_ = (type)(value);                                           \
        memcpy(to, &value_, sizeof value_);                                    \
    })

void number_store(enum number_type type, void *to, long double value)
{
    switch (type) {
    case NUMBER_U8:
        STORE(uint8_t, integer_of(value));
        return;
    case NUMBER_I8:
        STORE(int8_t, integer_of(value));
        return;
    case NUMBER_I16:
        STORE(int16_t, integer_of(value));
        return;
    case NUMBER_I32:
        STORE(int32_t, integer_of(value));
        return;
    case NUMBER_I64:
        STORE(int64_t, integer_of(value));
        return;
    case NUMBER_F16:
        STORE(_Float16, value);
        return;
    case NUMBER_F32:
        STORE(float, value);
        return;
    case NUMBER_F64:
        STORE(double, value);
        return;
    case NUMBER_BOOL:
        STORE(uint8_t, value != 0);
        return;
    case NUMBER_BF16:
        STORE(uint16_t, bfloat_bits(value));
        return;
    case NUMBER_NONE:
        return;
    }
}
