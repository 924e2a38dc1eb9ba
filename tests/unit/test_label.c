/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/attribution/label.h"
#include "kernels/kernel_words.h"

#include "check.h"

/* Names as they stand in libtorch_cuda.so of PyTorch 2.11.0 (strings). */
static const struct {
    const char *mangled;
    const char *words;
} kernels[] = {
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5"
     "arrayIPcLm1EEEEviT0_T1_",
     "filled (zeros, ones, full)"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfE"
     "ESt5arrayIPcLm3EEEEviT0_T1_",
     "add"},
    {"_ZN43_GLOBAL__N__b6de9c8c_10_SoftMax_cu_9f978f6320softmax_warp_forwardIN"
     "3c104HalfES2_fLi0ELb0ELb0EEEvPT0_PKT_iiiPKbib",
     "softmax forward"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi2EZZZNS0_16tanh_kernel_cud"
     "aERNS_18TensorIteratorBaseEENKUlvE0_clEvENKUlvE_clEvEUldE_St5arrayIPcLm2E"
     "EEEviT0_T1_",
     "tanh"},
    {"_ZN2at6native29vectorized_elementwise_kernelILi2EZZZNS0_26GeluBackwardCUD"
     "AKernelImplERNS_18TensorIteratorBaseENS0_8GeluTypeEENKUlvE_clEvENKUlvE_cl"
     "EvEUlddE_St5arrayIPcLm3EEEEviT0_T1_",
     "gelu backward"},
    {"add_kernel_from_triton_0d1d2d", "add_kernel_from_triton_0d1d2d"},
    {"_Z7my_gemmPfS_", "my_gemm"},
    {"ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_stages_32x1_tn", "gemm"},
    {"_ZN10fbgemm_gpu12split_kernelIfEEvPT_", "fbgemm_gpu"},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7",
     "attention forward"},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26",
     "attention backward"},
    {"nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "gemm"},
    {"sm80_xmma_wgrad_implicit_gemm_tf32f32_nhwckrsc_nhwc", "convolution wgrad"},
    {"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<"
     "at::native::clamp_scalar_kernel_impl(at::TensorIteratorBase&)>>(int)",
     "clamp_scalar"},
    {"void (anonymous namespace)::softmax_warp_forward<float, 8>(float*)",
     "softmax forward"},
    {"void kernel<float, int>(unsigned long long)", "kernel"},
    {"_ZN2at6nativeEv", "native"},
    {"_ZLi4E", "kernel"},
    {"_Z", "kernel"},
    {"_Z99999999999999999999x", "kernel"},
    {"_Z3ab", "kernel"},
    {"", ""},
};

TEST(tells_kernels_in_words)
{
    char text[64];

    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        kernel_words(kernels[i].mangled, text, sizeof text);
        CHECK_STR(text, kernels[i].words);
    }
}

TEST(cuts_long_names)
{
    char text[8];

    kernel_words("a_name_longer_than_that", text, sizeof text);
    CHECK_STR(text, "a_name_");
}
