# SPDX-License-Identifier: Apache-2.0
"""Answers for ranks that are not run (memsim run --nnodes).

Of WORLD_SIZE ranks those of MEMSIM_RANKS are processes. Through NCCL the others
send what the one sends that stands for them (nccl/sources.h), and here they do
the same in what PyTorch does beside NCCL: the store where ranks meet,
gloo's collectives of host tensors, and with both collectives of objects. What a
rank alone could say that is not run is refused, with the program's line.

Where memsim chooses the ranks (MEMSIM_AXES), a message to a rank that is not run
shows an axis along which ranks differ. This process reports it and ends: memsim
runs the job again with a rank for each place on that axis. A rank that is not
run then sends the objects that the rank with its places sends. Where the user
named the ranks, the axis says for whom they stand, in the clock and in reports.
"""
import array
import ctypes
import datetime
import functools
import os
import pickle
import re
import sys
import time

WAIT_S = 25  # for what nobody sets, while nobody does anything
_PEER_KEY = re.compile(r"(\d+):(\d+)$")
_ROOT_KEY = re.compile(r"UniqueNCCLID:(\d+)$")  # in groups of more than 128
_ID_BYTES = 128  # nccl.h, NCCL_UNIQUE_ID_BYTES


REAL = [int(rank) for rank in os.environ["MEMSIM_RANKS"].split(",")]
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LIBRARY = globals().get("LIBRARY", "libmemsim.so")  # sitecustomize.py's
_core = ctypes.CDLL(LIBRARY)
_core.memsim_peers_busiest_ms.restype = ctypes.c_uint64
_tell = ctypes.PyDLL(LIBRARY).memsim_group_tell
after_import = None  # sitecustomize.py's
_differ = _core.memsim_ranks_differ
_differ.restype = ctypes.c_bool
_ranks_stand = _core.memsim_ranks_stand
_ranks_stand.restype = ctypes.c_uint32
_first_alike = _core.memsim_ranks_first
_first_alike.restype = ctypes.c_uint32
_NEXT_INIT = ctypes.c_int.in_dll(_core, "memsim_group_next_init").value
_AGAIN = ctypes.c_int.in_dll(_core, "memsim_ranks_again").value
_MOST = ctypes.c_int.in_dll(_core, "memsim_ranks_most").value  # processes
CHOSEN = os.environ.get("MEMSIM_AXES") is not None
AXES = bool(os.environ.get("MEMSIM_AXES"))  # some are known


def stand_in(rank, real=REAL):
    """The one of REAL that does what RANK does (core/run/differ.h)."""
    return _ranks_stand(rank, (ctypes.c_uint32 * len(real))(*real), len(real))


def _place():
    """The program's line, as "train.py:31"."""
    frame = sys._getframe(1)
    # As compiled: __file__ is where the module lies now.
    own = os.path.dirname(frame.f_code.co_filename)
    while frame is not None:
        name = frame.f_code.co_filename
        if not ("/site-packages/" in name or "/lib/python3" in name
                or os.path.dirname(name) == own or name.startswith("<")):
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


_told = set()  # whom this rank has sent a message, in which group


# --- ranks that differ -------------------------------------------------------

def _group_ranks(group):
    from torch.distributed import distributed_c10d as c10d
    group = group or c10d._get_default_group()
    if group == c10d.GroupMember.NON_GROUP_MEMBER:
        return []
    return c10d.get_process_group_ranks(group)


def _message(peer, group):
    """This rank sends rank PEER a message, or gets one from it: these two
    differ. If memsim chooses the ranks and does not know that yet, it runs the
    job again. Of ranks that the user named each learns it at its own first
    message, whether its peer runs or not: at the same place of the program."""
    if peer is None or peer == RANK or CHOSEN and peer in REAL:
        return
    way = peer, getattr(group, "group_name", None)
    if AXES and _first_alike(peer) != _first_alike(RANK) or way in _told:
        return
    _told.add(way)
    ranks = _group_ranks(group)
    if len(ranks) == WORLD:  # the distance is all that is known
        step = abs(peer - RANK)
        ranks = range(RANK % step, WORLD - WORLD % step, step)
    listed = array.array("I", ranks).tobytes()
    if _differ(listed, len(ranks), b"messages", _place().encode()):
        _run_again()


def _source(rank, group):
    """RANK brings its objects to GROUP. In a group of the whole world no other
    rank does what it does."""
    if CHOSEN and rank not in REAL and len(_group_ranks(group)) == WORLD:
        _core.memsim_rank_differs(rank, _place().encode())
        _run_again()
    _message(rank, group)


def _needs_all(what):
    """WHAT is between all ranks; where memsim chooses them, it runs them all."""
    if len(REAL) == WORLD:
        return
    if CHOSEN and WORLD <= _MOST and _differ(None, WORLD, b"messages",
                                             _place().encode()):
        _run_again()
    raise RuntimeError(
        f"memsim: {_place()}: {what} needs all ranks of the job, and {len(REAL)} "
        f"of {WORLD} are run; " + ("run them all: --ranks all" if WORLD <= _MOST
                                   else f"memsim runs at most {_MOST}"))


def _run_again():
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(_AGAIN)


def _serve_shards(module):
    """FSDP2's shards of a parameter: equal ones, then perhaps a smaller one,
    then perhaps empty ones. The ranks where that changes differ."""
    param = getattr(sys.modules[module + "._fsdp_param"], "FSDPParam")
    group = getattr(sys.modules[module + "._fsdp_param_group"],
                    "FSDPParamGroup")
    found = set()

    def edges(self):
        dim = getattr(getattr(self, "fsdp_placement", None), "dim", 0)
        rows, count = self._orig_size[dim], self.mesh_info.shard_mesh_size
        share = -(-rows // count)
        if not share:
            return
        ranks = _group_ranks(self.mesh_info.shard_process_group)
        for edge in {rows // share, -(-rows // share)}:
            if edge < count and ranks[edge] not in REAL:
                yield ranks[edge]

    def init(original):
        def run(self, *args, **kwargs):
            original(self, *args, **kwargs)
            for rank in edges(self):
                if rank not in found:
                    found.add(rank)
                    _core.memsim_rank_differs(rank, _place().encode())
        return run

    def lazy_init(original):
        def run(self, *args, **kwargs):
            if found:
                _run_again()
            return original(self, *args, **kwargs)
        return run

    param._init_sharded_param = init(param._init_sharded_param)
    group.lazy_init = lazy_init(group.lazy_init)


_sent = {}  # how many objects went from places to places


def _object_key(kind, source, target):
    """The store's key of the next object from a rank with SOURCE's places."""
    ends = (kind, _first_alike(source),
            None if target is None else _first_alike(target))
    _sent[ends] = _sent.get(ends, -1) + 1
    return f"memsim objects {ends} {_sent[ends]}"


def _objects_give(kind, target, objects):
    """For ranks whose own peer is not run: what this one sends."""
    if AXES and len(REAL) < WORLD:
        from torch.distributed import distributed_c10d as c10d
        text = pickle.dumps(objects).hex()
        c10d._get_default_store().compare_set(
            _object_key(kind, RANK, target), "", text)


def _objects_take(kind, source, target, group):
    """What a rank with SOURCE's places sent, and that as tensors of the sizes
    and of the bytes; None: there is no such rank."""
    alike = stand_in(source)
    if not AXES or _first_alike(alike) != _first_alike(source) or \
            alike == RANK:
        return None
    import torch
    from torch.distributed import distributed_c10d as c10d
    key = _object_key(kind, source, target)
    objects = pickle.loads(bytes.fromhex(
        c10d._get_default_store().get(key).decode()))
    parts = [c10d._object_to_tensor(each, torch.device("cpu"), group)
             for each in objects]
    return objects, [torch.cat([size for _, size in parts]),
                     torch.cat([data for data, _ in parts])]


_incoming = []  # what the next messages bring, in place of what is not known
brought = []  # objects.py: the objects that these are


def _fill(tensor):
    if _incoming:
        tensor.copy_(_incoming.pop(0))


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
    root = _ROOT_KEY.match(parts[-1])
    if root:  # memsim's NCCL takes only the first root's
        return ranks[0] if root[1] == "0" else None, ranks
    return (ranks[0], ranks) if parts[-1].isdigit() else None


_kept = []  # Store.wait as it was; stores, which C++ holds without their Python


def _missing(store, keys):
    """Those of KEYS that nobody has set, in words."""
    missing = [key for key in keys if not store.check([key])] or keys[:1]
    more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
    return ", ".join(map(repr, missing[:3])) + more


def _busy_now():
    """What the other processes have used of the processor: struct peers_note."""
    note = ctypes.create_string_buffer(8192)
    _core.memsim_peers_note(note)
    return note


def _is_idle(since, busy):
    """Whether no other process of the run has done anything."""
    most = 50 + (time.monotonic() - since) * 30
    return _core.memsim_peers_busiest_ms(busy) < most


def _wait(store, keys, timeout):
    """Like store.wait(), but not for ever where nobody can set KEYS."""
    start, busy = time.monotonic(), _busy_now()
    limit, pause = start + timeout.total_seconds(), 0.001
    since = start
    while not store.check(keys):
        now = time.monotonic()
        if now > limit:
            return _kept[0](store, keys, datetime.timedelta(milliseconds=1))
        if now - since > WAIT_S:
            if _is_idle(since, busy):
                raise RuntimeError(
                    f"memsim: {_place()}: rank {RANK} waits for "
                    f"{_missing(store, keys)} in the store, which no rank sets "
                    "that is run (--ranks)")
            since, busy = now, _busy_now()
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


class _Served:
    """A store around INNER, where ranks that are not run have set what they
    would set: a base beside PyTorch's."""

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

    deleteKey = delete_key  # what PyTorch's C++ looks for

    def num_keys(self):
        return self.inner.num_keys()

    getNumKeys = num_keys  # likewise

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


def _serve_tcp_stores(dist):
    """A store waits for those of its world that are run."""
    original = dist.TCPStore.__init__

    def tcp_store(self, *args, **kwargs):
        args = list(args)
        if len(args) > 2 and args[2] == WORLD:
            args[2] = len(REAL)
        if kwargs.get("world_size") == WORLD:
            kwargs["world_size"] = len(REAL)
        if 0 not in REAL and RANK == REAL[0]:  # memsim emulate: it is alone
            if len(args) > 3:
                args[3] = True
            else:
                kwargs["is_master"] = True
        original(self, *args, **kwargs)

    dist.TCPStore.__init__ = tcp_store


def _serve_stores(dist, c10d):
    class World(_Served, dist.Store):
        pass

    def served(store):
        if store is not None and not isinstance(store, World):
            store = World(store)
            _kept.append(store)
        return store

    def waits(name):
        """A store that the script made itself waits no longer than ours."""
        original = getattr(dist.Store, name)

        def run(self, keys, *args):
            if not isinstance(self, World):
                _wait(self, [keys] if isinstance(keys, str) else keys,
                      args[0] if args else self.timeout)
            return original(self, keys, *args)
        return run

    def rendezvous(*args, **kwargs):
        for store, rank, size in rendezvous_original(*args, **kwargs):
            yield served(store), rank, size

    def init_process_group(*args, **kwargs):
        size = kwargs.get("world_size", args[3] if len(args) > 3 else -1)
        if size not in (-1, None, WORLD):
            raise RuntimeError(
                f"memsim: {_place()}: rank {RANK} calls init_process_group with "
                f"a world of {size} ranks, but --nnodes and --nproc-per-node "
                f"make {WORLD}")
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
    _serve_tcp_stores(dist)
    _kept.append(dist.Store.wait)
    for name in "get", "wait":
        setattr(dist.Store, name, waits(name))
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


def _finish(work, ranks):
    """Waits for a collective of RANKS, not for ever where one of them does not
    call it."""
    start = since = time.monotonic()
    busy, pause = _busy_now(), 0.0001
    while not work.is_completed():
        now = time.monotonic()
        if now - since > WAIT_S:
            if _is_idle(since, busy):
                others = ", ".join(str(r) for r in ranks if r != RANK)
                raise RuntimeError(
                    f"memsim: {_place()}: rank {RANK} has waited for "
                    f"{now - start:.0f} s for host tensors of other ranks; one "
                    f"of ranks {others} does not send them, and all are idle")
            since, busy = now, _busy_now()
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    work.wait()


class _Mirror:
    """Collectives of host tensors in one group."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.real, self.inner = _host[tuple(ranks)]

    def share(self, tensor):
        """What each rank that is run has in TENSOR."""
        tensor = tensor.detach().contiguous()
        if self.inner is None:
            return {RANK: tensor.clone()}
        import torch
        outs = [torch.empty_like(tensor) for _ in self.real]
        _finish(self.inner.allgather([outs], [tensor]), self.real)
        return dict(zip(self.real, outs))

    def everybody(self, tensor):
        """What each rank of the group has."""
        have = self.share(tensor)
        return [have[stand_in(r, self.real)] for r in self.ranks]

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


class _Around:
    """Functions of torch.distributed are replaced by others around them."""

    def __init__(self, dist, c10d):
        self.dist, self.c10d = dist, c10d

    def mirror(self, group, *tensors):
        """The group's, or None where PyTorch's own function will do."""
        group = group or self.c10d._get_default_group()
        if group == self.c10d.GroupMember.NON_GROUP_MEMBER:
            return None
        ranks = self.c10d.get_process_group_ranks(group)
        if tuple(ranks) not in _host or any(
                t.device.type != "cpu" for t in tensors):
            return None
        return _Mirror(ranks)

    @staticmethod
    def root(group, m, rank, group_rank):
        """The rank of the world that ROOT is."""
        return m.ranks[group_rank] if group_rank is not None else rank

    def replace(self, name, around):
        original = getattr(self.c10d, name, None)
        if original is None:
            return
        function = around(original)
        function.__name__ = name
        for module in self.dist, self.c10d:
            setattr(module, name, function)


class _Collectives(_Around):
    """Of host tensors, in groups with ranks that are not run."""

    def all_reduce(self, original):
        def run(tensor, op=self.dist.ReduceOp.SUM, group=None, async_op=False):
            m = self.mirror(group, tensor)
            if m is None:
                return original(tensor, op, group, async_op)
            tensor.copy_(m.reduce(tensor, op))
            return _Done() if async_op else None
        return run

    def reduce(self, original):
        def run(tensor, dst=None, op=self.dist.ReduceOp.SUM, group=None,
                async_op=False, group_dst=None):
            m = self.mirror(group, tensor)
            if m is None:
                extra = {} if group_dst is None else {"group_dst": group_dst}
                return original(tensor, dst, op, group, async_op, **extra)
            value = m.reduce(tensor, op)
            if self.root(group, m, dst, group_dst) == RANK:
                tensor.copy_(value)
            return _Done() if async_op else None
        return run

    def broadcast(self, original):
        def run(tensor, src=None, group=None, async_op=False, group_src=None):
            m = self.mirror(group, tensor)
            if m is None:
                extra = {} if group_src is None else {"group_src": group_src}
                work = original(tensor, src, group, async_op, **extra)
                _fill(tensor)
                return work
            source = self.root(group, m, src, group_src)
            if _incoming:
                _fill(tensor)
                return None
            have = m.share(tensor)
            if source in have:
                tensor.copy_(have[source])
            return _Done() if async_op else None
        return run

    def all_gather(self, original):
        def run(tensor_list, tensor, group=None, async_op=False):
            m = self.mirror(group, tensor)
            if m is None:
                return original(tensor_list, tensor, group, async_op)
            for out, part in zip(tensor_list, m.everybody(tensor)):
                out.copy_(part)
            return _Done() if async_op else None
        return run

    def all_gather_into_tensor(self, original):
        def run(output_tensor, input_tensor, group=None, async_op=False):
            m = self.mirror(group, input_tensor)
            if m is None:
                return original(output_tensor, input_tensor, group, async_op)
            import torch
            output_tensor.view(-1).copy_(torch.cat(
                [part.view(-1) for part in m.everybody(input_tensor)]))
            return _Done() if async_op else None
        return run

    def gather(self, original):
        def run(tensor, gather_list=None, dst=None, group=None, async_op=False,
                group_dst=None):
            m = self.mirror(group, tensor)
            if m is None:
                extra = {} if group_dst is None else {"group_dst": group_dst}
                return original(tensor, gather_list, dst, group, async_op,
                                **extra)
            for out, part in zip(gather_list or [], m.everybody(tensor)):
                out.copy_(part)
            return _Done() if async_op else None
        return run

    def scatter(self, original):
        def run(tensor, scatter_list=None, src=None, group=None,
                async_op=False, group_src=None):
            m = self.mirror(group, tensor)
            if m is None:
                extra = {} if group_src is None else {"group_src": group_src}
                return original(tensor, scatter_list, src, group, async_op,
                                **extra)
            import torch
            source = self.root(group, m, src if src is not None else 0,
                               group_src)
            parts = torch.stack(list(scatter_list)) if scatter_list else \
                tensor.new_zeros((len(m.ranks), *tensor.shape))
            have = m.share(parts)
            if source in have:
                tensor.copy_(have[source][m.ranks.index(RANK)])
            return _Done() if async_op else None
        return run

    def barrier(self, original):
        def run(group=None, *args, **kwargs):
            m = self.mirror(group)
            backend = self.c10d.get_backend(group)
            if m is None or "nccl" in str(backend):
                return original(group, *args, **kwargs)
            import torch
            m.share(torch.zeros(1))
            return _Done() if kwargs.get("async_op") else None
        return run

    def monitored_barrier(self, original):
        def run(group=None, timeout=None, wait_all_ranks=False):
            m = self.mirror(group)
            if m is None:
                return original(group, timeout, wait_all_ranks)
            import torch
            m.share(torch.zeros(1))
        return run


class _Messages(_Around):
    """From one rank to another."""

    def peer_of(self, args, kwargs, names, position=1):
        """The rank of the world that a message is for, or None."""
        for name in names:
            if kwargs.get(name) is not None:
                ranks = _group_ranks(kwargs.get("group"))
                return ranks[kwargs[name]] if name.startswith("group_") \
                    else kwargs[name]
        return args[position] if len(args) > position else None

    @staticmethod
    def group_of(args, kwargs, position=2):
        return kwargs.get("group", args[position] if len(args) > position
                          else None)

    @staticmethod
    def what_of(args, kwargs, name):
        return args[0] if args else kwargs[name]

    def send(self, original):
        def run(*args, **kwargs):
            _message(self.peer_of(args, kwargs, ("dst", "group_dst")),
                     self.group_of(args, kwargs))
            return original(*args, **kwargs)
        return run

    def receive(self, original):
        def run(*args, **kwargs):
            tensor = self.what_of(args, kwargs, "tensor")
            source = self.peer_of(args, kwargs, ("src", "group_src"))
            group = self.group_of(args, kwargs)
            if _incoming and self.mirror(group, tensor) is not None:
                _fill(tensor)
                return source
            _message(source, group)
            if self.mirror(group, tensor) is not None:
                if source not in REAL:
                    raise RankNotRun("a message", source)
                raise RuntimeError(
                    f"memsim: {_place()}: rank {RANK} waits for a host tensor "
                    f"of rank {source}: messages of host tensors need all "
                    "ranks of their group (--ranks all)")
            work = original(*args, **kwargs)
            _fill(tensor)
            return work
        return run

    def batch(self, original):
        def run(operations):
            for each in operations:
                _message(each.peer, each.group)
            coming, _incoming[:] = _incoming[:], []
            works = original(operations)
            if coming:
                for work in works:
                    work.wait()
                _incoming[:] = coming
                _fill(operations[0].tensor)
            return works
        return run


class _Objects(_Messages):
    """Python objects."""

    def objects_to(self, original):
        def run(*args, **kwargs):
            target = self.peer_of(args, kwargs, ("dst", "group_dst"))
            _message(target, self.group_of(args, kwargs))
            _objects_give("message", target,
                          self.what_of(args, kwargs, "object_list"))
            return original(*args, **kwargs)
        return run

    def objects_from(self, position, kind):
        """Of collectives that bring one rank's objects to others."""
        def around(original):
            def run(*args, **kwargs):
                source = self.peer_of(args, kwargs, ("src", "group_src"),
                                      position)
                group = self.group_of(args, kwargs, position + 1)
                if source is None and kind != "message":
                    source = 0
                target = RANK if kind == "message" else None
                if source is not None and source not in REAL:
                    (_message if kind == "message" else _source)(source, group)
                    taken = None if kind == "scatter" else _objects_take(
                        kind, source, target, group)
                    if taken is None:
                        raise RankNotRun("objects", source)
                    brought[:], _incoming[:] = taken
                if source == RANK and kind == "broadcast":
                    _objects_give(kind, None,
                                  self.what_of(args, kwargs, "object_list"))
                try:
                    return original(*args, **kwargs)
                finally:
                    brought.clear()
                    _incoming.clear()
            return run
        return around

    def objects_of_all(self, name):
        def around(original):
            def run(*args, **kwargs):
                _accept_copies()
                group = kwargs.get("group") or self.c10d._get_default_group()
                if group != self.c10d.GroupMember.NON_GROUP_MEMBER:
                    ranks = self.c10d.get_process_group_ranks(group)
                    missing = sum(r not in REAL for r in ranks)
                    if missing:
                        _note(f"{name}: {missing} of {len(ranks)} objects are "
                              "copies of those of ranks that are run")
                return original(*args, **kwargs)
            return run
        return around


def _serve_collectives(dist, c10d):
    """Replaces the functions of torch.distributed for host tensors of groups
    with ranks that are not run."""
    tensors = _Collectives(dist, c10d)
    objects = _Objects(dist, c10d)
    for name in ("all_reduce", "reduce", "broadcast", "all_gather", "gather",
                 "scatter", "all_gather_into_tensor", "barrier",
                 "monitored_barrier"):
        tensors.replace(name, getattr(tensors, name))
    for name, around in {
            "all_gather_single": tensors.all_gather_into_tensor,  # in 2.15
            "send": objects.send, "isend": objects.send,
            "recv": objects.receive, "irecv": objects.receive,
            "batch_isend_irecv": objects.batch,
            "send_object_list": objects.objects_to,
            "broadcast_object_list": objects.objects_from(1, "broadcast"),
            "scatter_object_list": objects.objects_from(2, "scatter"),
            "recv_object_list": objects.objects_from(1, "message"),
            "all_gather_object": objects.objects_of_all("all_gather_object"),
            "gather_object": objects.objects_of_all("gather_object")}.items():
        objects.replace(name, around)


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


# --- RPC ---------------------------------------------------------------------

def _serve_rpc():
    rpc = sys.modules["torch.distributed.rpc"]
    original = getattr(rpc, "init_rpc", None)  # not in every build

    def init_rpc(*args, **kwargs):
        _needs_all("RPC")
        return original(*args, **kwargs)

    if original is not None:
        rpc.init_rpc = functools.wraps(original)(init_rpc)


def start():
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None:
        return
    dist = sys.modules["torch.distributed"]
    _serve_stores(dist, c10d)
    _serve_groups(dist, c10d)
    _serve_collectives(dist, c10d)
    after_import("torch.distributed.rpc", _serve_rpc)
    if CHOSEN and len(REAL) < WORLD:
        for module in ("torch.distributed.fsdp._fully_shard",
                       "torch.distributed._composable.fsdp"):  # before 2.6
            after_import(module + "._fsdp_param_group",
                         functools.partial(_serve_shards, module))
