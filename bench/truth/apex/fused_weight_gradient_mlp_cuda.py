# SPDX-License-Identifier: Apache-2.0
"""For a machine where Apex's extension of this name is not built: allocates
what it allocates (csrc/megatron/fused_weight_gradient_dense*.cu of Apex
6424da3b: nothing but what PyTorch gives a thread's cuBLAS handle) and computes
nothing."""
import torch


def wgrad_gemm_accum_fp32(activations, gradient, main_gradient):
    """Adds to MAIN_GRADIENT, in place."""
    del activations, gradient, main_gradient
    torch.cuda.current_blas_handle()


wgrad_gemm_accum_fp16 = wgrad_gemm_accum_fp32
