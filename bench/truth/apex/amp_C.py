# SPDX-License-Identifier: Apache-2.0
"""For a machine where Apex's extension of this name is not built: allocates
what it allocates (csrc/multi_tensor_*.cu of Apex 6424da3b) and computes
nothing. The parts that Megatron and FusedAdam need."""
import torch


def multi_tensor_adam(*arguments):
    """In place, as the next three."""


multi_tensor_adam_capturable = multi_tensor_adam
multi_tensor_adam_capturable_master = multi_tensor_adam
multi_tensor_scale = multi_tensor_adam


def multi_tensor_l2norm(chunk, noop, lists, per_tensor=False):
    tensors, device = lists[0], lists[0][0].device
    held = [torch.zeros(320, device=device)]
    count = 0
    if per_tensor:
        count = len(tensors)
        chunks = max(-(-t.numel() // chunk) for t in tensors)
        held.append(torch.zeros(count * chunks, device=device))
    each = torch.empty(count, device=device)
    return torch.empty(1, device=device), each
