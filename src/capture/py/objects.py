# SPDX-License-Identifier: Apache-2.0
"""Objects that ranks exchange through NCCL. It brings no more than 1 MiB, and
nothing of a gather's from a rank that is not run (nccl/exchange.h). Such objects
go through the store where ranks meet, beside NCCL's calls: its bytes are as
many as ever, and PyTorch is given the objects instead of what they bring."""
import functools
import io
import sys
import threading

import torch.distributed as dist

LARGE_BYTES = 1 << 19  # half of what NCCL brings: never more than that
_PART_BYTES = 4 << 20  # PyTorch's store takes 8 MiB
_turns = {}  # of a group: how many calls went through the store
_now = threading.local()  # .call: the one that runs in this thread


def _c10d():
    return sys.modules["torch.distributed.distributed_c10d"]


def _give(key, data):
    store = _c10d()._get_default_store()
    parts = range(0, len(data), _PART_BYTES)
    for i in parts:
        store.set(f"{key} {i}", data[i:i + _PART_BYTES])
    store.set(key, str(len(data)))


def _take(key, takers):
    """What was given; the last of TAKERS removes it."""
    store = _c10d()._get_default_store()
    parts = range(0, int(store.get(key)), _PART_BYTES)
    data = b"".join(store.get(f"{key} {i}") for i in parts)
    if store.add(f"{key} taken", 1) == takers:
        for name in (key, f"{key} taken", *(f"{key} {i}" for i in parts)):
            store.delete_key(name)
    return data


class _Call:
    """A call of one of the functions of objects."""

    def __init__(self, group, kind):
        self.kind, self.name = kind, str(group.group_name)
        self.ranks = dist.get_process_group_ranks(group)
        world = (sys.modules.get("_memsim_world")
                 or sys.modules.get("_memsim_real_world"))
        self.real = [r for r in self.ranks if not world or r in world.REAL]
        self.stand_in = functools.partial(
            world.stand_in, real=self.real) if world else int
        self.brought = world.brought if world else []
        self.objects, self.tensors = [], []  # this rank's
        self.answers, self.index, self.key = {}, 0, None

    def sends(self, thing, tensor):
        if tensor.is_cuda:
            self.objects.append(thing)
            self.tensors.append(tensor)

    def is_large(self, size):
        return size >= LARGE_BYTES or (
            self.kind == "gather" and len(self.real) < len(self.ranks))

    def sent_bytes(self):
        """PyTorch makes the tensors as long as the longest."""
        size = sum(t.numel() for t in self.tensors)
        return size * len(self.ranks) if self.kind in ("all", "gather") \
            else size if self.kind == "broadcast" else \
            self.tensors[0].numel() if self.tensors else 0

    def give(self):
        """Once: what this rank sends."""
        if self.key is None:
            turn = _turns[self.name] = _turns.get(self.name, -1) + 1
            self.key = f"memsim objects {self.name} {turn}"
            for i, thing in enumerate(self.objects):
                data = io.BytesIO()
                _c10d()._pickler(data).dump(thing)
                slot = {"broadcast": i, "scatter": self.ranks[i]}.get(
                    self.kind, dist.get_rank())
                if self.kind != "scatter" or slot in self.real:
                    _give(f"{self.key} {slot}", data.getvalue())

    def take(self):
        """The object that PyTorch asks for next."""
        if self.brought:  # by a rank that does what the sender would do
            self.index += 1
            return self.brought[self.index - 1]
        self.give()
        slot, takers = self.index, len(self.real) - 1
        self.index += 1
        if self.kind in ("all", "gather"):
            slot = self.stand_in(self.ranks[slot])
            takers = len(self.real) if self.kind == "all" else 1
        elif self.kind == "scatter":
            slot, takers = dist.get_rank(), 1
        if slot not in self.answers:
            self.answers[slot] = _take(f"{self.key} {slot}", takers)
        return _c10d()._unpickler(io.BytesIO(self.answers[slot])).load()


def _around(original, kind, position):
    @functools.wraps(original)
    def run(*args, **kwargs):
        group = kwargs.get("group", args[position] if len(args) > position
                           else None) or _c10d()._get_default_group()
        if not isinstance(group, dist.ProcessGroup):
            return original(*args, **kwargs)  # not this rank's
        _now.call = call = _Call(group, kind)
        try:
            result = original(*args, **kwargs)
        finally:
            _now.call = None
        if call.tensors and call.is_large(call.sent_bytes()):
            call.give()
        return result
    return run


def start():
    c10d = _c10d()
    to_tensor, to_object = c10d._object_to_tensor, c10d._tensor_to_object

    @functools.wraps(to_tensor)
    def object_to_tensor(thing, *args, **kwargs):
        tensor, size = to_tensor(thing, *args, **kwargs)
        if getattr(_now, "call", None):
            _now.call.sends(thing, tensor)
        return tensor, size

    @functools.wraps(to_object)
    def tensor_to_object(tensor, *args, **kwargs):
        call = getattr(_now, "call", None)
        if (call and tensor.is_cuda
                and call.is_large(tensor.untyped_storage().nbytes())):
            return call.take()
        return to_object(tensor, *args, **kwargs)

    c10d._object_to_tensor = object_to_tensor
    c10d._tensor_to_object = tensor_to_object
    for name, kind, position in (("all_gather_object", "all", 2),
                                 ("gather_object", "gather", 3),
                                 ("broadcast_object_list", "broadcast", 2),
                                 ("scatter_object_list", "scatter", 3)):
        function = _around(getattr(c10d, name), kind, position)
        for module in c10d, dist:
            setattr(module, name, function)
