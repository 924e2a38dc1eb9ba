/* SPDX-License-Identifier: Apache-2.0
 * Types of elements by their C++ names. */
#include <ctype.h>
#include <string.h>

#include "kernels/work_internal.h"

static const struct {
    const char *name;
    uint8_t bytes, type;
} types[] = {
    {"float", 4, WORK_FP32},
    {"double", 8, WORK_FP64},
    {"c10::BFloat16", 2, WORK_BF16},
    {"c10::Half", 2, WORK_FP16},
    {"__nv_bfloat16", 2, WORK_BF16},
    {"__half", 2, WORK_FP16},
    {"half", 2, WORK_FP16},
    {"cutlass::bfloat16_t", 2, WORK_BF16},
    {"cutlass::half_t", 2, WORK_FP16},
    {"cutlass::tfloat32_t", 4, WORK_TF32},
    {"long", 8, WORK_INTEGER},
    {"unsigned long", 8, WORK_INTEGER},
    {"long long", 8, WORK_INTEGER},
    {"unsigned long long", 8, WORK_INTEGER},
    {"int", 4, WORK_INTEGER},
    {"unsigned int", 4, WORK_INTEGER},
    {"short", 2, WORK_INTEGER},
    {"unsigned short", 2, WORK_INTEGER},
    {"char", 1, WORK_INTEGER},
    {"signed char", 1, WORK_INTEGER},
    {"unsigned char", 1, WORK_INTEGER},
    {"bool", 1, WORK_INTEGER},
    {"c10::complex<float>", 8, WORK_FP32},
    {"c10::complex<double>", 16, WORK_FP64},
    {"c10::complex<c10::Half>", 4, WORK_FP16},
    {"c10::Float8_e4m3fn", 1, WORK_FP8},
    {"c10::Float8_e5m2", 1, WORK_FP8},
    {"c10::Float8_e4m3fnuz", 1, WORK_FP8},
    {"c10::Float8_e5m2fnuz", 1, WORK_FP8},
    {"c10::Float8_e8m0fnu", 1, WORK_FP8},
};

/* OpaqueType<4u> and its kin, which stand for any type of that size. */
uint32_t work_opaque_bytes(struct cxx_text text)
{
    const char *at = cxx_find(text, "OpaqueType<");
    uint32_t bytes = 0;

    if (!at)
        return 0;
    for (at += strlen("OpaqueType<");
         at < text.at + text.length && isdigit((unsigned char)*at); at++)
        bytes = bytes * 10 + (uint32_t)(*at - '0');
    return bytes <= 16 ? bytes : 0;
}

uint32_t work_type_read(struct cxx_text text, enum work_type *type)
{
    text = cxx_unqualified(text);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (cxx_is(text, types[i].name)) {
            *type = (enum work_type)types[i].type;
            return types[i].bytes;
        }
    if (!cxx_ends(text, ">"))
        return 0;
    uint32_t bytes = work_opaque_bytes(text);

    if (bytes)
        *type = WORK_INTEGER;
    return bytes;
}
