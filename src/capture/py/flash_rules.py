# SPDX-License-Identifier: Apache-2.0
"""What a call of FlashAttention 2's extension takes, and which kernels it
launches, for flash_attn_2_cuda.py.

The rules are those of FlashAttention 2.8.3, of its public source:
csrc/flash_attn/flash_api.cpp for parts and what they take, and
src/flash_fwd_launch_template.h and src/flash_bwd_launch_template.h for the
kernels.
"""
import ctypes
import struct

import torch

_core = ctypes.PyDLL("libmemsim.so")
_core.memsim_kernel_named.restype = ctypes.c_void_p
_core.memsim_kernel_launch.argtypes = ctypes.c_void_p, ctypes.c_void_p
_HEADS_AT, _SIZES_AT = 96, 152  # of the kernels' parameters: kernel_attention.c
_PARAMETER_BYTES = 512
_HEAD_SIZES = 32, 64, 96, 128, 192, 256  # kernels there are
_TYPES = {torch.float16: "N7cutlass6half_tE",
          torch.bfloat16: "N7cutlass10bfloat16_tE"}
_kernels = {}
_told = False


def divide_up(a, b):
    return -(-a // b)


def round_up(a, b):
    return divide_up(a, b) * b


def _mangled(arguments):
    return "".join(a if isinstance(a, str) else
                   f"Lb{int(a)}E" if isinstance(a, bool) else f"Li{a}E"
                   for a in arguments)


def _single(x):
    return ctypes.c_float(x).value


class _Gpu:
    """What FlashAttention asks of a GPU."""

    def __init__(self, device):
        p = torch.cuda.get_device_properties(device)
        self.sms = p.multi_processor_count
        self.small = p.major == 8 and p.minor > 0  # 8.6 and 8.9
        self.block_bytes = p.shared_memory_per_block_optin
        self.sm_bytes = p.shared_memory_per_multiprocessor
        if p.major < 8:
            raise RuntimeError(
                "FlashAttention only supports Ampere GPUs or newer.")


class Call:
    """One call of the extension, with what its kernels are chosen by."""

    def __init__(self, q, k, heads, kv_heads, head_size, softcap=0.0,
                 dropout=0.0, alibi=None):
        if q.dtype not in _TYPES:
            raise RuntimeError(
                "FlashAttention only support fp16 and bf16 data type")
        if k.dtype != q.dtype:
            raise RuntimeError("query and key must have the same dtype")
        if head_size > 256:
            raise RuntimeError(
                "FlashAttention only supports head dimension at most 256")
        if head_size % 8:
            raise RuntimeError("head_size must be a multiple of 8")
        if heads % kv_heads:
            raise RuntimeError("Number of heads in key/value must divide "
                               "number of heads in query")
        if softcap > 0 and dropout > 0:
            raise RuntimeError("Softcapping does not support dropout for now")
        _tell()
        self.gpu = _Gpu(q.device)
        self.type, self.device = q.dtype, q.device
        self.heads, self.kv_heads, self.head_size = heads, kv_heads, head_size
        self.head_size_up = round_up(head_size, 32 if head_size <= 128 else 64)
        self.dropout, self.softcap = dropout > 0, softcap > 0
        self.alibi = alibi is not None
        self.ragged = False
        self.total = self.splits = 0

    def sizes(self, batch, queries, keys):
        self.batch, self.queries, self.keys = batch, queries, keys
        self.queries_up = round_up(queries, 128)
        self.keys_up = round_up(keys, 128)

    def mask(self, causal, left, right):
        """Causal is a window, too; one that hides no key is none."""
        left = -1 if left >= self.keys else left
        right = -1 if right >= self.keys else right
        if causal:
            right = 0
        self.causal = left < 0 and right == 0
        self.local = (left >= 0 or right >= 0) and not self.causal

    def floats(self, *sizes, make=torch.empty):
        return make(sizes, dtype=torch.float32, device=self.device)

    # --- kernels ---------------------------------------------------------

    @property
    def kernel_head_size(self):
        return next(n for n in _HEAD_SIZES if self.head_size <= n)

    def traits(self, kind, rows, columns, warps, *more):
        """The name of the traits of a kernel whose blocks have so many ROWS
        of queries and COLUMNS of keys."""
        sizes = _mangled((self.kernel_head_size, rows, columns, warps))
        element = _TYPES[self.type]
        return (f"{len(kind)}{kind}I{sizes}{_mangled(more)}{element}"
                f"19Flash_kernel_traitsI{sizes}{element}EE")

    def even(self, rows, columns):
        """Whether blocks fit sequences, and head sizes their kernel's."""
        sizes = self.head_size == self.kernel_head_size
        return (not self.ragged and not self.queries % rows and
                not self.keys % columns and sizes and not self.local and
                not self.alibi and self.kernel_head_size <= 128), \
            sizes and not self.alibi

    def launch(self, name, arguments, parameters, grid, warps):
        """NAME's template has ARGUMENTS: bools, ints and mangled traits."""
        text = (f"_ZN5flash{len(name)}{name}I{_mangled(arguments)}EEv"
                f"NS_16{parameters}")
        kernel = _kernels.get(text)
        if kernel is None:
            kernel = _core.memsim_kernel_named(text.encode(), False)
            _kernels[text] = kernel
        self.start(kernel, grid, 32 * warps)

    def start(self, kernel, grid, threads):
        data = bytearray(_PARAMETER_BYTES)
        struct.pack_into("2i", data, _HEADS_AT, self.heads, self.kv_heads)
        struct.pack_into(
            "10i", data, _SIZES_AT, self.batch, self.queries, self.keys, 0,
            self.head_size, self.queries_up, self.keys_up, self.head_size_up,
            0, self.total)
        held = (ctypes.c_char * _PARAMETER_BYTES).from_buffer(data)
        argument = ctypes.c_void_p(ctypes.addressof(held))
        launch = struct.pack(
            "7I4xQQ", *grid, threads, 1, 1, 0,
            torch.cuda.current_stream(self.device).cuda_stream,
            ctypes.addressof(argument))
        if not kernel or _core.memsim_kernel_launch(kernel, launch):
            raise RuntimeError("CUDA error: invalid configuration argument")

    # --- forward ---------------------------------------------------------

    def split(self, splits):
        """In how many parts of its keys a short call is carried out, and what
        that takes. SPLITS: as asked for; 0: not."""
        if self.dropout:
            return None
        columns = 256 if self.head_size <= 64 else \
            128 if self.head_size <= 128 else 64
        if splits < 1:
            splits = _splits(
                self.batch * self.heads * divide_up(self.queries, 64),
                2 * self.gpu.sms, divide_up(self.keys, columns))
        if splits > 128:
            raise RuntimeError("num_splits > 128 not supported")
        self.splits = splits
        if splits < 2:
            return None
        rows = splits, self.batch, self.heads, self.queries
        return self.floats(*rows), self.floats(*rows, self.head_size_up)

    def forward(self, keeps=False, forced=False, appends=False):
        """The kernels. KEEPS: the probabilities; FORCED: the kernel for parts,
        even of one part, which APPENDS to a cache of keys, or not."""
        if self.splits > 1 or forced:
            self.forward_parts(appends)
            return
        rows, columns, warps = self.forward_blocks()
        even, even_size = self.even(rows, columns)
        self.launch(
            "flash_fwd_kernel",
            [self.traits("Flash_fwd_kernel_traits", rows, columns, warps,
                         False, False),
             self.dropout and not self.softcap, self.causal, self.local,
             self.alibi, even and not keeps, even_size and not keeps,
             self.softcap, keeps and self.dropout and not self.softcap],
            "Flash_fwd_paramsE",
            (divide_up(self.queries, rows), self.batch, self.heads), warps)

    def forward_blocks(self):
        """Queries and keys of a block, and its warps."""
        size, small = self.kernel_head_size, self.gpu.small
        if size == 32:
            return 128, 128, 4
        if size == 64:
            return 128, 64 if self.dropout else 128, 4
        if size == 96:
            return 64 if small and self.causal else 128, 64, 4
        if size == 128 and small and self.causal and not self.dropout:
            return 64, 64, 4
        if size == 128:
            return 128, 32 if self.dropout or small else 64, 4
        if size == 192:
            return (64, 64, 4) if self.dropout else (128, 64, 8)
        if self.gpu.block_bytes >= 128 << 10 and self.gpu.sm_bytes < 192 << 10:
            return 128, 64, 8
        return 64, 64, 4

    def forward_parts(self, appends):
        size = self.kernel_head_size
        rows, columns = 64, 256 if size <= 64 else 128 if size <= 128 else 64
        even, even_size = self.even(rows, columns)
        traits = self.traits("Flash_fwd_kernel_traits", rows, columns, 4,
                             False, False)
        parts = self.splits > 1
        blocks = divide_up(self.queries, rows)
        self.launch(
            "flash_fwd_splitkv_kernel",
            [traits, self.causal, self.local, self.alibi,
             even and not appends, even_size, self.softcap, parts, appends],
            "Flash_fwd_paramsE",
            (blocks, self.splits, self.batch * self.heads) if parts else
            (blocks, self.batch, self.heads), 4)
        if not parts:
            return
        rows = 4 if not size % 128 else 8 if not size % 64 else 16
        self.launch(
            "flash_fwd_splitkv_combine_kernel",
            [traits, rows, (self.splits - 1).bit_length(),
             self.head_size == size],
            "Flash_fwd_paramsE",
            (divide_up(self.batch * self.heads * self.queries, rows), 1, 1),
            4)

    # --- backward --------------------------------------------------------

    def backward(self, deterministic):
        blocks = self.backward_blocks()
        if blocks is None:
            return
        rows, columns, *more = blocks
        even, even_size = self.even(rows, columns)
        traits = self.traits("Flash_bwd_kernel_traits", rows, columns, 8, *more)
        by_rows = divide_up(self.queries, rows), self.batch, self.heads
        by_columns = divide_up(self.keys, columns)
        if deterministic:
            by_columns = self.parts()
        self.launch("flash_bwd_dot_do_o_kernel", [not deterministic, traits],
                    "Flash_bwd_paramsE", by_rows, 8)
        self.launch(
            "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel",
            [traits, self.dropout and not self.softcap, self.causal,
             self.local, self.alibi, even, even_size, self.softcap],
            "Flash_bwd_paramsE", (by_columns, self.batch, self.heads), 8)
        self.launch("flash_bwd_convert_dq_kernel", [traits],
                    "Flash_bwd_paramsEi", by_rows, 8)

    def parts(self):
        """Of the sum of a query's gradient, where its order is to be one."""
        return divide_up(self.gpu.sms, self.batch * self.heads)

    def backward_blocks(self):
        """Queries and keys of a block, three atoms' layouts, whether values
        are in registers, and whether one buffer is enough; None where there
        are no such kernels, and FlashAttention launches none."""
        size, room = self.kernel_head_size, self.gpu.block_bytes >> 10
        if size == 32:
            return 128, 128, 4, 4, 4, room < 104 or not self.dropout, False
        if size == 64:
            return (128, 128, 4, 4, 4, False, False) if room >= 144 else \
                (64, 128, 2, 4, 4, True, False)
        if size == 96:
            return 64, 128, 2, 4, 4, room < 116 or not self.dropout, False
        if size == 128:
            return (64, 128, 2, 4, 2, False, False) if room >= 144 else \
                (64, 64, 4, 2, 2, True, False)
        if size == 192:
            return 64, 64, 4, 2, 2, room < 136, room < 136
        if room >= 144:
            return 64, 64, 4, 2, 2, False, room < 176
        return None if self.dropout else (64, 32, 4, 1, 2, True, True)


def _splits(blocks, places, parts):
    """The fewest parts that keep 85% as many of the GPU's PLACES busy as the
    best number of them does, for BLOCKS of queries and PARTS of keys."""
    if blocks >= _single(0.8) * places:
        return 1
    most = min(128, places, parts)
    busy = {}
    for n in range(1, most + 1):
        if n == 1 or divide_up(parts, n) != divide_up(parts, n - 1):
            waves = _single(_single(blocks * n) / places)
            busy[n] = _single(waves / -(-waves // 1))
    best = max(busy.values(), default=0)
    return next((n for n in busy if busy[n] >= 0.85 * best), 1)


def _tell():
    global _told
    if not _told:
        _told = True
        _core.memsim_note(
            b"flash_attn_2_cuda is not installed: memsim stands in for it, "
            b"with the memory and the kernels of FlashAttention 2.8")
