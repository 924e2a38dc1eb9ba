# SPDX-License-Identifier: Apache-2.0
"""The operators of several kernels each that memsim calibrate measures with
PyTorch's profiler. For each table: a draw of a shape, what is run for it, and
the kernels that count: how their names begin, with the operator, elements and
bytes of their rows. These are what memsim takes a launch for (src/kernels), which is what its prices ask for."""
import torch

from calibrate_operators import ATEN, DTYPES, SIZES, between

INDEX = 8  # bytes of an index


def random(dtype, *shape):
    """Ties would spare a top-k most of its passes."""
    return torch.randn(shape, device="cuda").to(DTYPES[dtype])


def row(op, numel, read, written):
    return {"op": op, "numel": numel, "bytes": read + written,
            "read_bytes": read}


def in_place(numel, pair):
    """What sorts short rows, by their length."""
    moved = row("block_sort", numel, numel * pair, numel * pair)
    return {"bitonicSortKVInPlace": moved, "warpMergeSortKVInPlace": moved,
            "radixSortKVInPlace": moved}


def passes(numel, key):
    """cub's radix sort, with an index as its value."""
    moved = numel * (key + INDEX)
    return {"DeviceRadixSortOnesweepKernel": row("sort", numel, moved, moved),
            "DeviceRadixSortHistogramKernel": row("sort", numel, numel * key,
                                                  0)}


# --- sort --------------------------------------------------------------------

SORTS = {  # rows and columns, from and to
    "whole": (1, 1, 1 << 15, 1 << 25),
    "blocks": (128, 1 << 14, 64, 2048),
    "segments": (128, 1024, 8192, 1 << 15),
}


def draw_sort(draw):
    kind = draw.choice(sorted(SORTS))
    low, high, narrow, wide = SORTS[kind]
    return {"kind": kind, "dtype": draw.choice(sorted(DTYPES)),
            "rows": between(draw, low, high, 1),
            "cols": between(draw, narrow, wide, 8)}


def make_sort(s):
    x = random(s["dtype"], s["rows"], s["cols"])
    return lambda: x.sort(-1)


def kernels_sort(s):
    numel, key = s["rows"] * s["cols"], SIZES[s["dtype"]]
    moved = numel * (key + INDEX)
    return {**passes(numel, key), **in_place(numel, key + INDEX),
            "DeviceSegmentedRadixSortKernel": row("block_sort", numel, moved,
                                                  moved)}


# --- top-k -------------------------------------------------------------------

def draw_top_k(draw):
    rows = between(draw, 1, 1 << 13, 1)
    return {"kind": "top_k", "dtype": draw.choice(sorted(DTYPES)), "rows": rows,
            "cols": between(draw, 256, max(512, min(1 << 17, (1 << 25) // rows)),
                            8),
            "k": draw.choice([1, 2, 8, 50, 200])}


def make_top_k(s):
    x = random(s["dtype"], s["rows"], s["cols"])
    return lambda: x.topk(s["k"])


def kernels_top_k(s):
    numel, key = s["rows"] * s["cols"], SIZES[s["dtype"]]
    found = s["rows"] * s["k"]
    return {"gatherTopK": row("top_k", numel, numel * key,
                              found * (key + INDEX)),
            "computeBlockDigitCounts": row("top_k", numel, numel * key, 0),
            **in_place(found, key + INDEX)}


# --- the gradient of an embedding --------------------------------------------

def draw_embedding_backward(draw):
    """Up to 3,072 indices have one kernel; more are sorted."""
    return {"kind": "embedding_backward", "dtype": draw.choice(sorted(DTYPES)),
            "rows": between(draw, 256, 1 << 15, 8),
            "cols": between(draw, 128, 4096, 128)}


def make_embedding_backward(s):
    """Each row of the weight once, so that no sum is a guess."""
    gradient = random(s["dtype"], s["rows"], s["cols"])
    rows = torch.arange(s["rows"], device="cuda").flip(0)
    return lambda: ATEN.embedding_dense_backward(gradient, rows, s["rows"], -1,
                                                 False)


def kernels_embedding_backward(s):
    rows, numel = s["rows"], s["rows"] * s["cols"]
    moved = numel * SIZES[s["dtype"]]
    return {"embedding_backward_feature_kernel":
            row("index", numel, 2 * moved + INDEX * rows, moved),
            "compute_grad_weight": row("index", numel, moved + INDEX * rows, 0),
            "sum_and_scatter": row("index", numel, 4 * numel, moved),
            **passes(rows, INDEX)}


# As FAMILIES of calibrate_operators.py, and the kernels.
KERNEL_FAMILIES = {
    "sort": (draw_sort, make_sort, 6, kernels_sort),
    "top_k": (draw_top_k, make_top_k, 4, kernels_top_k),
    "embedding_backward": (draw_embedding_backward, make_embedding_backward, 3,
                           kernels_embedding_backward),
}
