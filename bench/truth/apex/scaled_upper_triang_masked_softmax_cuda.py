# SPDX-License-Identifier: Apache-2.0
"""For a machine where Apex's extension of this name is not built: allocates
what it allocates (csrc/megatron/scaled_upper_triang_masked_softmax_cuda.cu of
Apex 6424da3b) and computes nothing."""
import torch


def forward(x, scale):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def backward(grad, results, scale):
    return grad.contiguous()  # in place
