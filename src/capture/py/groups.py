# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so which ranks a process group has.

Of a new communicator NCCL is told how many ranks it has, and of a split one a
color; PyTorch has the lists. Where it makes a communicator later, at a group's
first collective, a mark in the group's options names the list: a field that
PyTorch hands to NCCL as it is, and that nothing but ours reads.
"""
import array
import ctypes
import itertools
import sys

_LIBRARY = globals().get("LIBRARY", "libmemsim.so")  # as sitecustomize.py says
_NEXT = ctypes.c_int.in_dll(ctypes.CDLL(_LIBRARY), "memsim_group_next").value
_UNSET = -2 ** 31  # nccl.h, NCCL_CONFIG_UNDEF_INT
_FIRST_MARK = -2 ** 30  # neither a color nor a value of splitShare


def _wrap(owner, name, around):
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, around(original))


def start():
    distributed = sys.modules.get("torch.distributed.distributed_c10d")
    if distributed is None:  # a torch without it
        return
    group_tell = ctypes.PyDLL(_LIBRARY).memsim_group_tell

    def tell(color, ranks):
        try:
            listed = array.array("I", ranks)
        except (OverflowError, TypeError):  # PyTorch's to complain about
            return
        group_tell(color, listed.tobytes(), len(listed))

    def color_of(original):  # new_group; split_group before 2.9
        def process_group_color(ranks):
            color = original(ranks)
            tell(color, ranks)
            return color
        return process_group_color

    def split_group(original):
        def split(self, ranks, *args, **kwargs):
            tell(_NEXT, ranks)
            try:
                return original(self, ranks, *args, **kwargs)
            finally:
                tell(_NEXT, [])
        return split

    marks = itertools.count(_FIRST_MARK)

    def ranks_of_group(original):
        def set_ranks(options, ranks):
            original.__set__(options, ranks)
            if ranks and options.config.split_share in marked:
                mark = next(marks)
                marked.add(mark)
                tell(mark, ranks)
                options.config.split_share = mark
        return property(original.__get__, set_ranks)

    marked = {_UNSET}
    _wrap(distributed, "_process_group_color", color_of)
    nccl = getattr(distributed, "ProcessGroupNCCL", None)
    if hasattr(getattr(nccl, "NCCLConfig", None), "split_share"):
        _wrap(nccl.Options, "global_ranks_in_group", ranks_of_group)
    _wrap(distributed.ProcessGroup, "split_group", split_group)
