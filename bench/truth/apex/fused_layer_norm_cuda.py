# SPDX-License-Identifier: Apache-2.0
"""For a machine where Apex's extension of this name is not built: allocates
what it allocates (csrc/layer_norm_cuda.cpp and layer_norm_cuda_kernel.cu of
Apex 6424da3b) and computes nothing. Parts that LayerNorm needs."""
import torch

_PARTS = 16  # of the sums over rows, part_size in HostLayerNormGradient


def _statistics(x, shape):
    rows = x.numel() // torch.Size(shape).numel()
    return torch.empty(rows, device=x.device, dtype=torch.float64
                       if x.dtype == torch.float64 else torch.float32)


def forward_affine(x, shape, gamma, beta, epsilon):
    output = torch.empty_like(x)
    mean = _statistics(x, shape)
    return [output, mean, torch.empty_like(mean)]


def forward_affine_mixed_dtypes(x, shape, gamma, beta, epsilon):
    output = torch.empty_like(x, dtype=gamma.dtype)
    mean = _statistics(x, shape)
    return [output, mean, torch.empty_like(mean)]


def backward_affine(grad, mean, deviation, x, shape, gamma, beta, epsilon,
                    memory_efficient):
    made = [torch.empty_like(each) for each in (x, gamma, beta)]
    part = torch.empty(_PARTS, gamma.numel(), device=x.device,
                       dtype=torch.float32)
    parts = part, torch.empty_like(part)
    del parts
    return made
