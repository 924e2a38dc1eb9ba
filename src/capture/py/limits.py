# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so of limits that the program sets to its own memory.

The allocator does not tell anyone, and a replay on another card has to know.
"""
import ctypes

import torch

_NAME = "_cuda_setMemoryFraction"  # of torch.cuda.memory's function


def start():
    core = ctypes.PyDLL("libmemsim.so")
    original = getattr(torch._C, _NAME, None)  # a torch without CUDA has none
    if original is None:
        return

    def set_memory_fraction(fraction, device):
        original(fraction, device)
        core.memsim_torch_fraction(device, repr(float(fraction)).encode())

    setattr(torch._C, _NAME, set_memory_fraction)
