/* SPDX-License-Identifier: Apache-2.0
 * Numbers of any of torch's types, for kernels carried out on the host. All
 * arithmetic is in long double, whose 64 bits of mantissa hold every int64_t
 * and more than a double needs. */
#ifndef MEMSIM_CAPTURE_CORE_BASE_NUMBER_H
#define MEMSIM_CAPTURE_CORE_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Numbered as c10::ScalarType (torch/headeronly/core/ScalarType.h). */
enum number_type {
    NUMBER_U8 = 0,
    NUMBER_I8 = 1,
    NUMBER_I16 = 2,
    NUMBER_I32 = 3,
    NUMBER_I64 = 4,
    NUMBER_F16 = 5,
    NUMBER_F32 = 6,
    NUMBER_F64 = 7,
    NUMBER_BOOL = 11,
    NUMBER_BF16 = 15,
    NUMBER_NONE = 255,
};

/* The bytes of one TYPE; 0 where TYPE is not in the list above. */
uint32_t number_bytes(enum number_type type);
bool number_is_float(enum number_type type);

/* The type that arithmetic on TYPE is done in: at::opmath_type. */
enum number_type number_opmath(enum number_type type);

/* Without the mathematical library, which is not everybody's. */
static inline long double number_truncate(long double value)
{
    return value > -0x1p63L && value < 0x1p63L ? (int64_t)value : value;
}

static inline long double number_floor(long double value)
{
    long double whole = number_truncate(value);

    return whole > value ? whole - 1 : whole;
}

long double number_load(enum number_type type, const void *from);
void number_store(enum number_type type, void *to, long double value);

#endif
