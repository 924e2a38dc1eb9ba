# SPDX-License-Identifier: Apache-2.0
"""Answers for ranks that are not run (memsim run --nnodes).

Of WORLD_SIZE ranks those of MEMSIM_RANKS are processes. Through NCCL the others
send what the nearest lower rank sends that is one (nccl/exchange.h), and here
they do the same in what PyTorch does beside NCCL: the store where ranks meet,
gloo's collectives of host tensors, and with both collectives of objects. What a
rank alone could say that is not run is refused, with the program's line.
"""
import ctypes
import datetime
import os
import re
import sys
import time

WAIT_S = 25  # for what nobody sets, while nobody does anything
_PEER_KEY = re.compile(r"(\d+):(\d+)$")
_ID_BYTES = 128  # nccl.h, NCCL_UNIQUE_ID_BYTES
_NEXT_INIT = -3  # core/torch/process_group.h


def _ranks(text):
    """Of "0,8-11,16-24:4"."""
    for part in text.split(","):
        span, _, stride = part.partition(":")
        first, _, last = span.partition("-")
        yield from range(int(first), int(last or first) + 1, int(stride or 1))


REAL = sorted(_ranks(os.environ["MEMSIM_RANKS"]))
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
_core = ctypes.CDLL("libmemsim.so")
_core.memsim_peers_busy_ms.restype = ctypes.c_uint64
_tell = ctypes.PyDLL("libmemsim.so").memsim_group_tell


def _place():
    """The program's line, as "train.py:31"."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not ("/site-packages/" in name or "/lib/python3" in name
                or name == __file__ or name.startswith("<")):
            return f"{os.path.basename(name)}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def _note(text):
    _core.memsim_note(b"%s", f"{_place()}: {text}".encode()[:190])


class RankNotRun(RuntimeError):
    """Only a rank that is not run could answer."""

    def __init__(self, what, rank):
        super().__init__(
            f"memsim: {_place()}: rank {RANK} waits for {what} of rank {rank}, "
            f"which is not run; run it, too: --ranks "
            f"{','.join(map(str, sorted({*REAL, rank})))}")


# --- the store ---------------------------------------------------------------

_groups = {}  # a group's name: its ranks of the world


def _setter(key):
    """(rank that sets KEY, ranks of its communicator) where it is the id of a
    communicator of NCCL's, else None."""
    parts = key.split("//")
    ranks = _groups.get(parts[-3].split("/")[-1]) if len(parts) > 2 else None
    if ranks is None or parts[-2] not in ("cuda", "nccl", "undefined"):
        return None
    peers = _PEER_KEY.match(parts[-1])
    if peers:
        pair = [ranks[int(peer)] for peer in peers.groups()]
        return pair[0], pair
    return (ranks[0], ranks) if parts[-1].isdigit() else None


def _is_idle(since, busy):
    """Whether no other process of the run has done anything."""
    now = _core.memsim_peers_busy_ms()
    return now - busy < 50 + (time.monotonic() - since) * 30


def _wait(store, keys, timeout):
    """Like store.wait(), but not for ever where nobody can set KEYS."""
    start, busy = time.monotonic(), _core.memsim_peers_busy_ms()
    limit, pause = start + timeout.total_seconds(), 0.001
    since = start
    while not store.check(keys):
        now = time.monotonic()
        if now > limit:
            return store.wait(keys, datetime.timedelta(milliseconds=1))
        if now - since > WAIT_S:
            if _is_idle(since, busy):
                raise RuntimeError(
                    f"memsim: {_place()}: rank {RANK} waits for {keys[0]!r} in "
                    "the store, which no rank sets that is run (--ranks)")
            since, busy = now, _core.memsim_peers_busy_ms()
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _store_class(dist):
    class World(dist.Store):
        """INNER, where ranks that are not run have set what they would set."""

        def __init__(self, inner):
            super().__init__()
            self.inner, self.limit = inner, datetime.timedelta(minutes=30)

        def _met(self, key):
            """Tells NCCL of the pair that is about to meet by KEY. Returns
            whether a rank would set KEY that is not run."""
            setter = _setter(key)
            if setter is None:
                return False
            if _PEER_KEY.search(key):
                import array
                _tell(_NEXT_INIT, array.array("I", setter[1]).tobytes(), 2)
            return setter[0] not in REAL

        def get(self, key):
            if self._met(key):  # all ranks that are run agree on one
                value = os.urandom(_ID_BYTES // 2).hex()
                return self.inner.compare_set(key, "", value)
            _wait(self.inner, [key], self.limit)
            return self.inner.get(key)

        def set(self, key, value):
            self._met(key)
            return self.inner.set(key, value)

        def wait(self, keys, timeout=None):
            return _wait(self.inner, keys, timeout or self.limit)

        def add(self, key, amount):
            return self.inner.add(key, amount)

        def check(self, keys):
            return self.inner.check(keys)

        def compare_set(self, key, expected, desired):
            return self.inner.compare_set(key, expected, desired)

        def delete_key(self, key):
            return self.inner.delete_key(key)

        def num_keys(self):
            return self.inner.num_keys()

        def append(self, key, value):
            return self.inner.append(key, value)

        def multi_get(self, keys):
            return [self.get(key) for key in keys]

        def multi_set(self, keys, values):
            return self.inner.multi_set(keys, values)

        def has_extended_api(self):
            return self.inner.has_extended_api()

        def set_timeout(self, timeout):
            self.limit = timeout

        @property
        def timeout(self):
            return self.limit

    return World


_kept = []  # C++ holds stores without their Python


def _serve_stores(dist, c10d):
    world = _store_class(dist)
    original = dist.TCPStore.__init__

    def tcp_store(self, *args, **kwargs):
        args = list(args)
        if len(args) > 2 and args[2] == WORLD:
            args[2] = len(REAL)
        if kwargs.get("world_size") == WORLD:
            kwargs["world_size"] = len(REAL)
        original(self, *args, **kwargs)

    def served(store):
        if store is not None and not isinstance(store, world):
            store = world(store)
            _kept.append(store)
        return store

    def rendezvous(*args, **kwargs):
        for store, rank, size in rendezvous_original(*args, **kwargs):
            yield served(store), rank, size

    def init_process_group(*args, **kwargs):
        if kwargs.get("store") is not None:
            kwargs["store"] = served(kwargs["store"])
        return init_original(*args, **kwargs)

    def barrier(rank, store, group_name, rendezvous_count, *args, **kwargs):
        ranks = _groups.get(group_name, range(WORLD))
        if rendezvous_count != len(ranks):
            ranks = range(rendezvous_count)
        return barrier_original(rank, store, group_name,
                                sum(r in REAL for r in ranks), *args, **kwargs)

    rendezvous_original = c10d.rendezvous
    init_original = c10d.init_process_group
    barrier_original = c10d._store_based_barrier
    dist.TCPStore.__init__ = tcp_store
    c10d.rendezvous = rendezvous
    c10d._store_based_barrier = barrier
    for module in dist, c10d:
        module.init_process_group = init_process_group


# --- gloo --------------------------------------------------------------------

_making = []  # ranks of the group that is being made, innermost last
_host = {}  # a group's ranks: (those that are run, their own gloo or None)


def _serve_groups(dist, c10d):
    """Where a group has ranks that are not run, gloo connects the others
    alone, and PyTorch is given a backend that does nothing."""
    original = c10d._new_process_group_helper
    gloo = getattr(c10d, "ProcessGroupGloo", None)
    from torch._C._distributed_c10d import FakeProcessGroup

    def helper(group_size, group_rank, global_ranks_in_group, backend, store,
               group_name, *args, **kwargs):
        ranks = list(global_ranks_in_group) or list(range(WORLD))
        _groups[str(group_name)] = ranks
        _making.append(ranks)
        try:
            return original(group_size, group_rank, global_ranks_in_group,
                            backend, store, group_name, *args, **kwargs)
        finally:
            _making.pop()

    class Gloo(type):
        def __instancecheck__(cls, instance):
            return isinstance(instance, (gloo, FakeProcessGroup))

        def __call__(cls, store, rank, size, *args, **kwargs):
            ranks = _making[-1] if _making else list(range(size))
            real = [r for r in ranks if r in REAL]
            if len(real) == len(ranks):
                return gloo(store, rank, size, *args, **kwargs)
            inner = None
            if len(real) > 1:
                inner = gloo(store, real.index(RANK), len(real), *args,
                             **kwargs)
            _host[tuple(ranks)] = real, inner
            create = getattr(FakeProcessGroup, "_create_internal", None)
            if create is None:
                return FakeProcessGroup(rank, size)
            return create(rank, size, FakeProcessGroup.Options())

    FakeProcessGroup._set_sequence_number_for_group = lambda self: None
    FakeProcessGroup._get_sequence_number_for_group = lambda self: 0
    c10d._new_process_group_helper = helper
    if gloo is not None:
        c10d.ProcessGroupGloo = Gloo("ProcessGroupGloo", (), {
            "_Options": getattr(gloo, "_Options", None),
            "create_device": gloo.create_device,
            "create_default_device": gloo.create_default_device})


class _Done:
    """The work of a collective that is over."""

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    def get_future(self):
        import torch
        future = torch.futures.Future()
        future.set_result(None)
        return future


class _Mirror:
    """Collectives of host tensors in one group."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.real, self.inner = _host[tuple(ranks)]

    def stand_in(self, rank):
        """The rank that is run and does what RANK would do."""
        lower = [r for r in self.real if r <= rank]
        return lower[-1] if lower else self.real[0]

    def share(self, tensor):
        """What each rank that is run has in TENSOR."""
        tensor = tensor.detach().contiguous()
        if self.inner is None:
            return {RANK: tensor.clone()}
        import torch
        outs = [torch.empty_like(tensor) for _ in self.real]
        self.inner.allgather([outs], [tensor]).wait()
        return dict(zip(self.real, outs))

    def everybody(self, tensor):
        """What each rank of the group has."""
        have = self.share(tensor)
        return [have[self.stand_in(r)] for r in self.ranks]

    def reduce(self, tensor, op):
        import torch
        parts = torch.stack(self.everybody(tensor))
        name = str(op).rsplit(".", 1)[-1]
        if name == "AVG":
            return parts.sum(0) / len(self.ranks)
        return {"SUM": lambda: parts.sum(0, dtype=parts.dtype),
                "PRODUCT": lambda: parts.prod(0, dtype=parts.dtype),
                "MAX": lambda: parts.max(0).values,
                "MIN": lambda: parts.min(0).values,
                }.get(name, lambda: parts[0])()


def _serve_collectives(dist, c10d):
    """Replaces the functions of torch.distributed for host tensors of groups
    with ranks that are not run."""
    def mirror(group, *tensors):
        """The group's, or None where PyTorch's own function will do."""
        group = group or c10d._get_default_group()
        if group == c10d.GroupMember.NON_GROUP_MEMBER:
            return None
        ranks = c10d.get_process_group_ranks(group)
        if tuple(ranks) not in _host or any(
                t.device.type != "cpu" for t in tensors):
            return None
        return _Mirror(ranks)

    def root(group, m, rank, group_rank):
        """The rank of the world that ROOT is."""
        return m.ranks[group_rank] if group_rank is not None else rank

    def replace(name, around):
        original = getattr(c10d, name, None)
        if original is None:
            return
        function = around(original)
        function.__name__ = name
        for module in dist, c10d:
            setattr(module, name, function)

    def all_reduce(original):
        def run(tensor, op=dist.ReduceOp.SUM, group=None, async_op=False):
            m = mirror(group, tensor)
            if m is None:
                return original(tensor, op, group, async_op)
            tensor.copy_(m.reduce(tensor, op))
            return _Done() if async_op else None
        return run

    def reduce(original):
        def run(tensor, dst=None, op=dist.ReduceOp.SUM, group=None,
                async_op=False, group_dst=None):
            m = mirror(group, tensor)
            if m is None:
                extra = {} if group_dst is None else {"group_dst": group_dst}
                return original(tensor, dst, op, group, async_op, **extra)
            value = m.reduce(tensor, op)
            if root(group, m, dst, group_dst) == RANK:
                tensor.copy_(value)
            return _Done() if async_op else None
        return run

    def broadcast(original):
        def run(tensor, src=None, group=None, async_op=False, group_src=None):
            m = mirror(group, tensor)
            if m is None:
                extra = {} if group_src is None else {"group_src": group_src}
                return original(tensor, src, group, async_op, **extra)
            source = root(group, m, src, group_src)
            have = m.share(tensor)
            if source in have:
                tensor.copy_(have[source])
            return _Done() if async_op else None
        return run

    def all_gather(original):
        def run(tensor_list, tensor, group=None, async_op=False):
            m = mirror(group, tensor)
            if m is None:
                return original(tensor_list, tensor, group, async_op)
            for out, part in zip(tensor_list, m.everybody(tensor)):
                out.copy_(part)
            return _Done() if async_op else None
        return run

    def all_gather_into_tensor(original):
        def run(output_tensor, input_tensor, group=None, async_op=False):
            m = mirror(group, input_tensor)
            if m is None:
                return original(output_tensor, input_tensor, group, async_op)
            import torch
            output_tensor.view(-1).copy_(torch.cat(
                [part.view(-1) for part in m.everybody(input_tensor)]))
            return _Done() if async_op else None
        return run

    def gather(original):
        def run(tensor, gather_list=None, dst=None, group=None, async_op=False,
                group_dst=None):
            m = mirror(group, tensor)
            if m is None:
                extra = {} if group_dst is None else {"group_dst": group_dst}
                return original(tensor, gather_list, dst, group, async_op,
                                **extra)
            for out, part in zip(gather_list or [], m.everybody(tensor)):
                out.copy_(part)
            return _Done() if async_op else None
        return run

    def scatter(original):
        def run(tensor, scatter_list=None, src=None, group=None,
                async_op=False, group_src=None):
            m = mirror(group, tensor)
            if m is None:
                extra = {} if group_src is None else {"group_src": group_src}
                return original(tensor, scatter_list, src, group, async_op,
                                **extra)
            import torch
            source = root(group, m, src if src is not None else 0, group_src)
            parts = torch.stack(list(scatter_list)) if scatter_list else \
                tensor.new_zeros((len(m.ranks), *tensor.shape))
            have = m.share(parts)
            if source in have:
                tensor.copy_(have[source][m.ranks.index(RANK)])
            return _Done() if async_op else None
        return run

    def barrier(original):
        def run(group=None, *args, **kwargs):
            m = mirror(group)
            backend = c10d.get_backend(group)
            if m is None or "nccl" in str(backend):
                return original(group, *args, **kwargs)
            import torch
            m.share(torch.zeros(1))
            return _Done() if kwargs.get("async_op") else None
        return run

    def monitored_barrier(original):
        def run(group=None, timeout=None, wait_all_ranks=False):
            m = mirror(group)
            if m is None:
                return original(group, timeout, wait_all_ranks)
            import torch
            m.share(torch.zeros(1))
        return run

    def receive(original):
        def run(tensor, src=None, group=None, *args, **kwargs):
            if mirror(group, tensor) is not None and src not in REAL:
                raise RankNotRun("a message", src)
            return original(tensor, src, group, *args, **kwargs)
        return run

    def objects_from(position, what):
        """Of collectives that bring one rank's objects to others."""
        def around(original):
            def run(*args, **kwargs):
                source = kwargs.get("src", args[position] if
                                    len(args) > position else 0)
                group = kwargs.get("group")
                if kwargs.get("group_src") is not None:
                    ranks = c10d.get_process_group_ranks(
                        group or c10d._get_default_group())
                    source = ranks[kwargs["group_src"]]
                if source is not None and source not in REAL:
                    raise RankNotRun(what, source)
                return original(*args, **kwargs)
            return run
        return around

    def objects_of_all(name):
        def around(original):
            def run(*args, **kwargs):
                _accept_copies()
                group = kwargs.get("group") or c10d._get_default_group()
                if group != c10d.GroupMember.NON_GROUP_MEMBER:
                    ranks = c10d.get_process_group_ranks(group)
                    missing = sum(r not in REAL for r in ranks)
                    if missing:
                        _note(f"{name}: {missing} of {len(ranks)} objects are "
                              "copies of those of ranks that are run")
                return original(*args, **kwargs)
            return run
        return around

    for name, around in {
            "all_reduce": all_reduce, "reduce": reduce, "broadcast": broadcast,
            "all_gather": all_gather, "gather": gather, "scatter": scatter,
            "all_gather_into_tensor": all_gather_into_tensor,
            "all_gather_single": all_gather_into_tensor,  # its name in 2.15
            "barrier": barrier, "monitored_barrier": monitored_barrier,
            "recv": receive, "irecv": receive,
            "broadcast_object_list": objects_from(1, "objects"),
            "scatter_object_list": objects_from(2, "objects"),
            "recv_object_list": objects_from(1, "objects"),
            "all_gather_object": objects_of_all("all_gather_object"),
            "gather_object": objects_of_all("gather_object")}.items():
        replace(name, around)


# --- checkpoints -------------------------------------------------------------

def _accept_copies():
    """A plan of copies writes some shards more than once, and others never.
    What several ranks have, the lowest writes, which is run."""
    planner = sys.modules.get("torch.distributed.checkpoint.default_planner")
    if planner is None or hasattr(planner, "_memsim_dedup"):
        return
    planner._memsim_dedup = dedup = getattr(planner, "dedup_save_plans", None)
    returns = getattr(planner._validate_global_plan, "__annotations__", {})
    fine = True if returns.get("return") in (bool, "bool") else []
    planner._validate_global_plan = lambda *args: fine
    if dedup is not None:
        planner.dedup_save_plans = lambda plans, *args: dedup(plans, True)


def start():
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None:
        return
    dist = sys.modules["torch.distributed"]
    _serve_stores(dist, c10d)
    _serve_groups(dist, c10d)
    _serve_collectives(dist, c10d)
