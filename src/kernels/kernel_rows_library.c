/* SPDX-License-Identifier: Apache-2.0
 * Kernels of libraries, which profilers show by name and whose arguments nobody
 * reads: their family and their words. The calls that memsim's own export names
 * are among them. The first that fits counts. */
#include "kernels/kernel_row.h"

#define PART(mark, kin, text)                                                  \
    {.contains = mark, .family = WORK_##kin, .words = text}

const struct kernel_row kernel_rows_library[] = {
    /* memsim's own, in the place of NCCL's (capture/emulate) */
    {.base = "memsim_collective",
     .family = WORK_COLLECTIVE,
     .host = KERNEL_HOST_COLLECTIVE,
     .words = "collective, emulated",
     .describe = work_told},
    {.base = "memsim_delay",
     .family = WORK_OTHER,
     .words = "delay",
     .describe = work_told_delay},
    /* FlashAttention's and PyTorch's, under other names than the rows above */
    PART("flash_fwd", ATTENTION_FORWARD, "flash attention forward"),
    PART("flash_bwd", ATTENTION_BACKWARD, "flash attention backward"),
    PART("fmha_cutlassF", ATTENTION_FORWARD,
         "memory-efficient attention forward"),
    PART("fmha_cutlassB", ATTENTION_BACKWARD,
         "memory-efficient attention backward"),
    PART("attention_forward", ATTENTION_FORWARD, "attention forward"),
    PART("attention_backward", ATTENTION_BACKWARD, "attention backward"),
    /* cuDNN: "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_..." */
    PART("_sdpa_*_bprop_", ATTENTION_BACKWARD, "attention backward"),
    PART("_sdpa_", ATTENTION_FORWARD, "attention forward"),
    PART("fprop", CONVOLUTION_FORWARD, "convolution forward"),
    PART("convolve", CONVOLUTION_FORWARD, "convolution forward"),
    PART("dgrad", CONVOLUTION_DGRAD, "convolution dgrad"),
    PART("wgrad", CONVOLUTION_WGRAD, "convolution wgrad"),
    /* cuBLAS and CUTLASS */
    PART("nvjet", GEMM, "gemm"),
    PART("gemv", GEMM, "gemm"),
    PART("gemm", GEMM, "gemm"),
    PART("splitKreduce", GEMM, "gemm"),
    PART("cublasGemm", GEMM, "gemm"),
    PART("cublasLtMatmul", GEMM, "gemm"),
    {.base = NULL},
};
