# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so of limits and settings that the program gives PyTorch's
allocator while it runs.

The allocator does not tell anyone, and a replay on another GPU has to know.
"""
import ctypes

import torch

# Of torch.cuda.memory's functions; the settings' has a new name since 2.10.
_FRACTION = "_cuda_setMemoryFraction"
_SETTINGS = ("_cuda_cudaCachingAllocator_set_allocator_settings",
             "_accelerator_setAllocatorSettings")


def _call_after(name, tell):
    """Has torch._C's function NAME call TELL with its arguments when it has
    done its work; a torch without CUDA has none."""
    original = getattr(torch._C, name, None)
    if original is None:
        return

    def call(*arguments):
        result = original(*arguments)
        tell(*arguments)
        return result

    setattr(torch._C, name, call)


def start():
    core = ctypes.PyDLL("libmemsim.so")
    _call_after(_FRACTION, lambda fraction, device: core.memsim_torch_fraction(
        device, repr(float(fraction)).encode()))
    for name in _SETTINGS:
        _call_after(name, lambda settings: core.memsim_torch_settings(
            settings.encode()))
