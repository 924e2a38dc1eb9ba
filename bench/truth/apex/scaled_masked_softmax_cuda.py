# SPDX-License-Identifier: Apache-2.0
"""For a machine where Apex's extension of this name is not built: allocates
what it allocates (csrc/megatron/scaled_masked_softmax_cuda.cu of Apex
6424da3b) and computes nothing."""
import torch


def get_batch_per_block(queries, keys, batch, heads):
    """Of blocks of 128 threads; short rows take less than a warp each."""
    power = 1 << max(keys - 1, 0).bit_length()
    return 128 // min(power, 32) * (2 if power <= 128 else 1)


def forward(x, mask, scale):
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def backward(grad, results, scale):
    return torch.empty_like(grad.contiguous())
