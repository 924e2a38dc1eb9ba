# SPDX-License-Identifier: Apache-2.0
"""Random initial values of large host tensors are not drawn: the tensor is
zero, and takes neither time nor memory (memsim run --real-init keeps them).

What they are matters to the host alone: a copy of so many bytes to the GPU is
unknown in any case (core/memory/values.h, VALUES_COPY_BYTES).

Nor is a module's copy of such a tensor on the host, of another type too.

For the same reason torch.load() maps a large checkpoint instead of reading it:
what nobody looks at is never read. A file that is younger than this process is
read: the script may write it again. torch.distributed.checkpoint has a tensor's
file of torch.save()'s inside a larger one, which PyTorch does not map: it is read
without the tensor's bytes, and these are mapped.

Where a real job has read such a file into memory, the bytes count as the
process's all the same (core/run/host_use.h).
"""
import ctypes
import functools
import io
import mmap
import os
import threading
import weakref

import torch

LARGE_BYTES = 1 << 20
LARGE_FILE_BYTES = 16 << 20
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


def _is_mapped(path, since):
    """Whether PATH is a large file of torch.save()'s, older than SINCE."""
    if not isinstance(path, (str, os.PathLike)):
        return False
    try:
        about = os.stat(path)
        if about.st_size < LARGE_FILE_BYTES or about.st_mtime >= since:
            return False
        with open(path, "rb") as file:
            return file.read(4) == b"PK\x03\x04"  # not the format before 1.6
    except OSError:
        return False  # PyTorch's to complain about


class _Skimmed(io.RawIOBase):
    """VIEW, a part of a file. What is read in large pieces stays there; `left`
    says where: (place in VIEW, bytes)."""

    def __init__(self, view):
        self._view, self.left = view, []

    def readinto(self, buffer):
        at, size = self._view.tell(), len(buffer)
        if size < LARGE_BYTES or at + size > self._view.len:
            return self._view.readinto(buffer)
        self._view.seek(at + size)
        self.left.append((at, size))
        return size

    def seek(self, *args):
        return self._view.seek(*args)

    def tell(self):
        return self._view.tell()

    def readable(self):
        return True

    def seekable(self):
        return True


def _is_part(f, since):
    """Whether F is a large part of a file, as DCP has it, older than SINCE."""
    base = getattr(f, "base_stream", None)
    if (not isinstance(getattr(base, "name", None), str)
            or getattr(f, "len", 0) < LARGE_FILE_BYTES):
        return False
    try:
        return os.fstat(base.fileno()).st_mtime < since
    except OSError:
        return False


def _load_part(load, f, args, kwargs, counter):
    """The tensor that the part F of a file has; None: it is something else."""
    skimmed = _Skimmed(f)
    tensor = load(skimmed, *args, **kwargs)
    if type(tensor) is not torch.Tensor or len(skimmed.left) != 1:
        return None
    (at, size), = skimmed.left
    storage = tensor.untyped_storage()
    if storage.nbytes() != size or storage.device.type != "cpu":
        return None
    before = (f.offset + at) % mmap.ALLOCATIONGRANULARITY
    mapped = mmap.mmap(f.base_stream.fileno(), before + size,
                       access=mmap.ACCESS_COPY, offset=f.offset + at - before)
    data = torch.frombuffer(mapped, dtype=torch.uint8, offset=before)
    counter.count(mapped, data.data_ptr(), size)
    return tensor.set_(data.untyped_storage(), tensor.storage_offset(),
                       tensor.shape, tensor.stride())


class _Counter:
    """Counts mapped memory as that of tensors, for as long as they live."""

    def __init__(self, core):
        self.takes, self.gives = core.memsim_host_takes, core.memsim_host_gives
        self.takes.argtypes = ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64
        self.gives.argtypes = ctypes.c_uint64,
        self.takes.restype = self.gives.restype = None
        self.now = threading.local()  # .maps: of the load that is running

    def count(self, owner, address, size):
        if size:
            self.takes(0, address, size)  # SESSION_HOST_TENSORS
            weakref.finalize(owner, self.gives, address).atexit = False

    def watch(self):
        original = torch.UntypedStorage.from_file

        @functools.wraps(original)
        def from_file(*args, **kwargs):
            storage = original(*args, **kwargs)
            maps = getattr(self.now, "maps", None)
            if maps is not None:
                maps.append((weakref.ref(storage), storage.data_ptr(),
                             storage.nbytes()))
            return storage
        torch.UntypedStorage.from_file = staticmethod(from_file)

    def load(self, load):
        """What LOAD returns, which maps a file. Some versions of PyTorch keep
        no object for the whole of it: then each tensor counts."""
        self.now.maps = maps = []
        try:
            result = load()
        finally:
            self.now.maps = None
        for storage, address, size in maps:
            if storage() is not None:
                self.count(storage(), address, size)
                continue
            for tensor in _tensors(result):
                part = tensor.untyped_storage()
                if address <= part.data_ptr() < address + size:
                    self.count(tensor, part.data_ptr(), part.nbytes())
        return result


def _tensors(value, depth=6):
    """The tensors on the host in VALUE: in dicts and lists."""
    if isinstance(value, torch.Tensor):
        if value.device.type == "cpu" and value.layout is torch.strided:
            yield value
    elif depth and isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part, depth - 1)


def _map_files(counter):
    since = os.stat("/proc/self").st_mtime
    original = torch.load

    @functools.wraps(original)
    def load(f, *args, mmap=None, **kwargs):
        if mmap is None and _is_mapped(f, since):
            return counter.load(lambda: original(os.fspath(f), *args,
                                                 mmap=True, **kwargs))
        if not mmap and _is_part(f, since):
            tensor = _load_part(original, f, args, kwargs, counter)
            if tensor is not None:
                return tensor
            f.seek(0)
        return original(f, *args, mmap=mmap, **kwargs)

    torch.load = torch.serialization.load = load


def _serve_copies(core):
    """What nobody touched is not read where a module gets another type, or a
    parameter is copied."""
    untouched, clear = core.memsim_pages_untouched, core.memsim_pages_clear
    untouched.argtypes = ctypes.c_void_p, ctypes.c_uint64
    untouched.restype = ctypes.c_bool
    apply, deepcopy = torch.nn.Module._apply, torch.nn.Parameter.__deepcopy__

    def is_zero(tensor):
        return _is_skipped(tensor) and untouched(
            tensor.data_ptr(), tensor.numel() * tensor.element_size())

    def zeros(like, shape):
        result = torch.empty(shape, dtype=like.dtype)
        clear(result.data_ptr(), result.numel() * result.element_size())
        return result

    def changed(function):
        @functools.wraps(function)
        def change(tensor):
            if is_zero(tensor):
                # What becomes of an empty tensor becomes of this one.
                empty = torch.empty(0, dtype=tensor.dtype)
                like = function(empty)
                if (type(like) is torch.Tensor and like is not empty
                        and like.device.type == "cpu" and like.is_contiguous()
                        and not like.is_shared() and not like.is_pinned()):
                    return zeros(like, tensor.shape)
            return function(tensor)
        change.memsim = True
        return change

    @functools.wraps(apply)
    def _apply(self, fn, *args, **kwargs):
        return apply(self, fn if hasattr(fn, "memsim") else changed(fn), *args,
                     **kwargs)

    @functools.wraps(deepcopy)
    def __deepcopy__(self, memo):
        if id(self) in memo or type(self) is not torch.nn.Parameter \
                or not is_zero(self):
            return deepcopy(self, memo)
        memo[id(self)] = copy = torch.nn.Parameter(
            zeros(self, self.shape), self.requires_grad)
        return copy

    torch.nn.Module._apply = _apply
    torch.nn.Parameter.__deepcopy__ = __deepcopy__


def start():
    core = ctypes.CDLL("libmemsim.so")
    counter = _Counter(core)
    counter.watch()
    _map_files(counter)
    clear = core.memsim_pages_clear
    clear.argtypes = ctypes.c_void_p, ctypes.c_uint64
    _serve_copies(core)
    compiling = getattr(torch.compiler, "is_compiling", None) or \
        torch._utils.is_compiling  # before PyTorch 2.2

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
