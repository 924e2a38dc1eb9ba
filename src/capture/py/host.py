# SPDX-License-Identifier: Apache-2.0
"""Random initial values of large host tensors are not drawn: the tensor is
zero, and takes neither time nor memory (memsim run --real-init keeps them).

What they are matters to the host alone: a copy of so many bytes to the GPU is
unknown in any case (core/memory/values.h, VALUES_COPY_BYTES).
"""
import ctypes
import functools

import torch

LARGE_BYTES = 1 << 20
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_skipped(tensor):
    return (type(tensor) in _PLAIN and tensor.device.type == "cpu"
            and tensor.layout is torch.strided
            and tensor.numel() * tensor.element_size() >= LARGE_BYTES
            and tensor.is_contiguous()
            and not torch._C._len_torch_dispatch_stack())


def _is_refused(tensor):
    """By PyTorch: a leaf that requires a gradient changes in place."""
    return (tensor.requires_grad and tensor.is_leaf
            and torch.is_grad_enabled())


def start():
    clear = ctypes.CDLL("libmemsim.so").memsim_pages_clear
    clear.argtypes = ctypes.c_void_p, ctypes.c_uint64
    compiling = torch.compiler.is_compiling

    def skipped(original, is_method):
        @functools.wraps(original)
        def initialize(tensor, *args, **kwargs):
            if (compiling() or not _is_skipped(tensor)
                    or is_method and _is_refused(tensor)):
                return original(tensor, *args, **kwargs)
            clear(tensor.data_ptr(), tensor.numel() * tensor.element_size())
            return tensor
        return initialize

    for owner, name in ((torch.Tensor, "normal_"), (torch.Tensor, "uniform_"),
                        (torch.nn.init, "_no_grad_trunc_normal_"),
                        (torch.nn.init, "orthogonal_")):
        original = getattr(owner, name, None)
        if original is not None:
            setattr(owner, name, skipped(original, owner is torch.Tensor))
