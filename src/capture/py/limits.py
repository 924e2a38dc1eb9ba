# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so of limits and settings that the program gives PyTorch's
allocator while it runs, and whether it has it record stacks.

The allocator does not tell anyone, and a replay on another GPU has to know.
"""
import ctypes

import torch

_LIBRARY = globals().get("LIBRARY", "libmemsim.so")  # as sitecustomize.py says

# Of torch.cuda.memory's functions; the settings' has a new name since 2.10.
_FRACTION = "_cuda_setMemoryFraction"
_SETTINGS = ("_cuda_cudaCachingAllocator_set_allocator_settings",
             "_accelerator_setAllocatorSettings")
_HISTORY = ("_cuda_record_memory_history", "_cuda_record_memory_history_legacy")


def _call_after(name, tell):
    """Has torch._C's function NAME call TELL with its arguments when it has
    done its work; a torch without CUDA has none."""
    original = getattr(torch._C, name, None)
    if original is None:
        return

    def call(*arguments, **named):
        result = original(*arguments, **named)
        tell(*arguments, **named)
        return result

    setattr(torch._C, name, call)


def _tells_history(core):
    """What the program's _record_memory_history() asks PyTorch to record,
    stacks of allocations, memsim's report has as well."""
    def tell(enabled, context=True, *_, **__):
        core.memsim_torch_history(int(bool(enabled and context)))
    return tell


def start():
    core = ctypes.PyDLL(_LIBRARY)
    _call_after(_FRACTION, lambda fraction, device: core.memsim_torch_fraction(
        device, repr(float(fraction)).encode()))
    for name in _SETTINGS:
        _call_after(name, lambda settings: core.memsim_torch_settings(
            settings.encode()))
    for name in _HISTORY:
        _call_after(name, _tells_history(core))
