/* SPDX-License-Identifier: Apache-2.0
 * Numbers of torch's types, and what mangled names say: the parts of the
 * carried-out kernels that need no device. */
#include "capture/core/compute/compute_name.c"
#include "capture/core/base/number.c"
#include "capture/core/work/kernel_pointers.c"
#include "check.h"

static long double round_trip(enum number_type type, long double value)
{
    char bytes[16] = {0};

    number_store(type, bytes, value);
    return number_load(type, bytes);
}

TEST(numbers)
{
    CHECK(round_trip(NUMBER_I64, INT64_MAX) == INT64_MAX);
    CHECK(round_trip(NUMBER_I64, INT64_MIN) == INT64_MIN);
    CHECK(round_trip(NUMBER_I64, 1e30L) == 0);
    CHECK(round_trip(NUMBER_U8, 257) == 1);
    CHECK(round_trip(NUMBER_I8, -1) == -1);
    CHECK(round_trip(NUMBER_BOOL, 3) == 1);
    CHECK(round_trip(NUMBER_F32, 0.1L) == 0.1f);
    CHECK(round_trip(NUMBER_F16, 65504) == 65504);
    CHECK(round_trip(NUMBER_F16, 1 + 0x1p-11L) == 1);
    CHECK(round_trip(NUMBER_BF16, 1 + 0x1p-8L) == 1);
    CHECK(round_trip(NUMBER_BF16, 1 + 0x3p-8L) == 1 + 0x1p-6L);
    CHECK(number_floor(-0.5L) == -1 && number_floor(2.5L) == 2);
    CHECK(number_truncate(-2.5L) == -2 && number_truncate(1e30L) == 1e30L);
}

TEST(not_a_number)
{
    long double nan = round_trip(NUMBER_BF16, __builtin_nanl(""));

    CHECK(nan != nan);
    nan = round_trip(NUMBER_F16, __builtin_nanl(""));
    CHECK(nan != nan);
    CHECK(round_trip(NUMBER_F16, 1e9L) > 1e9L);
}

TEST(sizes)
{
    CHECK(number_bytes(NUMBER_F16) == 2 && number_bytes(NUMBER_BOOL) == 1);
    CHECK(number_bytes(NUMBER_NONE) == 0);
    CHECK(number_opmath(NUMBER_BF16) == NUMBER_F32);
    CHECK(number_opmath(NUMBER_I64) == NUMBER_I64);
    CHECK(number_is_float(NUMBER_F64) && !number_is_float(NUMBER_BOOL));
}

TEST(types)
{
    const char *text = "lfbEvT_", *half = "N3c104HalfES4_bEE", *not = "S4_";
    enum number_type t[3];

    CHECK(name_types(&text, t, 3));
    CHECK(t[0] == NUMBER_I64 && t[1] == NUMBER_F32 && t[2] == NUMBER_BOOL);
    CHECK(*text == 'E');
    CHECK(name_types(&half, t, 3));
    CHECK(t[0] == NUMBER_F16 && t[1] == NUMBER_F16 && t[2] == NUMBER_BOOL);
    CHECK(!name_types(&not, t, 1)); /* of what? */
}

TEST(lambdas)
{
    enum number_type t[3];

    CHECK(name_lambda("18masked_fill_kernelEENKUlvE_clEvENKUlvE2_clEvEUllbE_",
                      t, 3) == 2);
    CHECK(t[0] == NUMBER_I64 && t[1] == NUMBER_BOOL);
    CHECK(name_lambda("EENKUlvE7_clEvEUlNS5_8BFloat16ES8_E_", t, 3) == 2);
    CHECK(t[0] == NUMBER_BF16 && t[1] == NUMBER_BF16);
    CHECK(name_lambda("EEUlNS5_4HalfEbE_", t, 3) == 2 && t[0] == NUMBER_F16);
    CHECK(name_lambda("EEUlNS5_7complexIfEEE_", t, 3) == -1);
    CHECK(name_lambda("EEUlP24curandStatePhilox4_32_10E_", t, 3) == -1);
    CHECK(name_lambda("no lambda", t, 3) == -1);
    CHECK(name_dispatched("ENKUlvE_clEvENKUlvE2_clEvEUllE_") == NUMBER_I64);
    CHECK(name_dispatched("ENKUlvE_clEvENKUlvE_clEvEUllE_") == NUMBER_U8);
    CHECK(name_dispatched("ENKUlvE_clEvENKUlvE99_clEvEUllE_") == NUMBER_NONE);
    CHECK(name_dispatched("nothing") == NUMBER_NONE);
}

TEST(opaque)
{
    CHECK(name_bytes("NS0_10OpaqueTypeILi8EEElE") == 8);
    CHECK(name_bytes("NS1_10OpaqueTypeILj16EEEj") == 16);
    CHECK(name_bytes("fEE") == 4);
    CHECK(name_bytes("NS0_8NullTypeE") == 0);
    CHECK(!name_after("abc", "d") && *name_after("abcd", "bc") == 'd');
}

static uint32_t addresses(const char *name)
{
    return kernel_pointers(name, false).all;
}

TEST(arguments_that_are_addresses)
{
    CHECK_UINT(addresses("_Z4fillPii"), 1);
    CHECK_UINT(addresses("_Z4nonev"), 0);
    CHECK_UINT(addresses("_Z5scalePfPKf"), 3);
    CHECK_UINT(addresses("_ZL3addfPKfS0_PfS1_i"), 0x1e);
    CHECK_UINT(addresses("_ZN2ns4viewEP6__halfS1_m"), 3);
    CHECK_UINT(addresses("_ZN2ns4viewENS_4ViewEPf"), 0); /* not read */
    CHECK_UINT(addresses("_Z4copyPPKdd3dim"), 1);
    CHECK_UINT(addresses("_Z4pair4int4S_Pv"), 4);
    CHECK_UINT(addresses("_Z3sumIfEvPT_"), 0); /* a template's */
    CHECK_UINT(addresses("plain_c_name"), 0);
    CHECK_UINT(addresses("_Z"), 0);
    CHECK_UINT(addresses("_Z99short"), 0);
    CHECK_UINT(addresses("_Z1aPS9_"), 0);
}

static uint32_t written(const char *name)
{
    const struct kernel_pointers p = kernel_pointers(name, true);

    return p.written & ~p.all ? ~0u : p.written;
}

/* Names as g++ makes them of template <typename T> void f(...). */
TEST(arguments_that_may_be_written_to)
{
    CHECK_UINT(written("_Z5scalePfPKf"), 1);
    CHECK_UINT(written("_ZL3addfPKfS0_PfS1_i"), 0x18);
    CHECK_UINT(written("_Z4copyPPKdd3dim"), 1);
    CHECK_UINT(written("_Z4viewPKvS0_"), 0);
    CHECK_UINT(written("_Z3sumIfEvPT_PKS0_i"), 1);
    CHECK_UINT(written("_ZN2ns3sumIfdEEvPKT_PT0_S3_i"), 2);
    CHECK_UINT(written("_ZN2ns3sumIfLi4EEEvPT_S2_PKS1_"), 3);
    CHECK_UINT(written("_Z3sumIJfdEEvPT_"), 0); /* not read */
    CHECK_UINT(written("_Z3sumILi4"), 0);
    CHECK_UINT(written("_Z3sumIfEvPT9_"), 0);
    CHECK_UINT(written("_Z3sumI"), 0);
}
