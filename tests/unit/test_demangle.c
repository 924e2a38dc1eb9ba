/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/demangle.h"

#include "check.h"

/* Names in libtorch_cuda.so of PyTorch 2.11.0, and what c++filt 2.40 makes of
 * them without the leading "void ". */
static const struct {
    const char *mangled, *text;
} names[] = {
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5"
     "arrayIPcLm1EEEEviT0_T1_",
     "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<floa"
     "t>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::ar"
     "ray<char*, 1ul>)"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi2EZZZNS0_16tanh_kernel_cud"
     "aERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE_clEvEUldE_St5arrayIPcLm2E"
     "EEEviT0_T1_",
     "at::native::vectorized_elementwise_kernel<2, at::native::tanh_kernel_cuda"
     "(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#1}"
     "::operator()() const::{lambda(double)#1}, std::array<char*, 2ul> >(int, a"
     "t::native::tanh_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::opera"
     "tor()() const::{lambda()#1}::operator()() const::{lambda(double)#1}, std:"
     ":array<char*, 2ul>)"},
    {"_Z24dispatch_softmax_forwardIN3c104HalfES1_fLb0ELb0EEvPT0_PKT_iiiPKbib",
     "dispatch_softmax_forward<c10::Half, c10::Half, float, false, false>(c10::"
     "Half*, c10::Half const*, int, int, int, bool const*, int, bool)"},
    {"_Z7my_gemmPfS_", "my_gemm(float*, float*)"},
    {"_ZN2at6native53_GLOBAL__N__222ba01c_20_UpSampleNearest2d_cu_198c5ce228ups"
     "ample_nearest2d_out_frameIfXadL_ZNS0_37nearest_neighbor_compute_source_in"
     "dexEfiiEEEEvPKT_PS3_mmmmmff",
     "at::native::(anonymous namespace)::upsample_nearest2d_out_frame<floa"
     "t, &at::native::nearest_neighbor_compute_source_index>(float const*, floa"
     "t*, unsigned long, unsigned long, unsigned long, unsigned long, unsigned "
     "long, float, float)"},
    {"add_kernel_0d1d2d", "add_kernel_0d1d2d"},
    {"", ""},
};

TEST(reads_names_as_c_plus_plus_filt_does)
{
    char text[1024];

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK(demangle(names[i].mangled, text, sizeof text));
        CHECK_STR(text, names[i].text);
    }
}

TEST(says_what_it_cannot_read)
{
    static const char *const bad[] = {
        "_Z",       "_Z3ab",         "_Z99999999999999999999x",
        "_ZLi4E",   "_ZN2at6native", "_Z1fIXntL_Z1gvEEEvv",
        "_Z1fS_",   "_Z1fIfEvS9_",   "_ZN",
        "_Z1fILi4",
    };
    char text[256];

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!demangle(bad[i], text, sizeof text));
}

TEST(keeps_the_part_that_fits)
{
    char text[8];

    CHECK(!demangle("a_name_longer_than_that", text, sizeof text));
    CHECK(!demangle("_Z3fooIfE3barvv", text, 1));
    CHECK_STR(text, "");
    CHECK(!demangle("_Z6my_fooPfS_", text, sizeof text));
    CHECK_STR(text, "my_foo(");
}

/* Each substitution is the one before twice: 2^40 names. */
TEST(ends_on_names_that_multiply)
{
    char name[1024] = "_Z1fP1aIS_S_E", text[4096];

    for (int i = 0; i < 30; i++)
        snprintf(name + strlen(name), sizeof name - strlen(name),
                 "P1bIS%c_S%c_E", i < 10 ? '0' + i : 'A' + i - 10,
                 i < 10 ? '0' + i : 'A' + i - 10);
    demangle(name, text, sizeof text);
    char large[1 << 16];
    demangle(name, large, sizeof large);
}
