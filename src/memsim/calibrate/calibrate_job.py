# SPDX-License-Identifier: Apache-2.0
"""The shapes that a recorded job has, for memsim calibrate --for: what its device
time is spent on comes first, and what no table has a row for is said."""
import collections
import os
import re
import subprocess
import sys

from calibrate_operators import SIZES, TYPES

NO_OPERATORS = ("copy", "set", "collective")
LAYOUTS = {"0,1": "TN", "0,0": "NN", "1,0": "NT"}
BACKENDS = {"flash2": "fa2", "cudnn": "cudnn", "efficient": "efficient"}


class Work(dict):
    """The fields of a line of `memsim trace --work --each`; numbers are ints."""

    def __init__(self, line):
        super().__init__(re.findall(r" (\w+)=(\S+)", line))
        self.family = line.split(" ", 1)[0]
        self.name = line.rsplit("basis=", 1)[-1].partition(" ")[2]
        self.ns = int(self.get("ns", 0))

    def number(self, *names):
        return [int(self[name]) for name in names]


def product(w):
    m, n, k, b = w.number("m", "n", "k", "batch")
    layout = LAYOUTS.get(w["transpose"])
    a_row, b_row = (m if layout == "NT" else k), (k if layout == "TN" else n)
    packed = all(int(w[name]) in (0, row) for name, row in
                 (("lda", a_row), ("ldb", b_row), ("ldc", n)))
    if not packed or (b > 1 and layout != "NN"):
        return None
    shape = {"op": "bmm" if b > 1 else "linear", "dtype": w["type"], "b": b,
             "m": m, "n": n, "k": k}
    if b > 1 or layout == "TN":
        return "gemm", shape
    return ("gemm_backward", {**shape, "op": "mm", "layout": layout}) \
        if layout else None


def plain(w):
    numel, size = int(w["elements"]), SIZES[w["type"]]
    reads = 2 if float(w["read"]) > 1.5 * float(w["written"]) else 1
    return "plain", {"op": "add" if reads == 2 else "relu", "dtype": w["type"],
                     "numel": numel, "bytes": (reads + 1) * numel * size,
                     "read_bytes": reads * numel * size}


ROWS = {  # the table, the operator, the tensors of its size, its kernel's name
    "softmax_forward": ("rows", "softmax", 2, "softmax"),
    "norm_forward": ("rows", "layer_norm", 2, "layer_norm"),
    "softmax_backward": ("rows_backward", "softmax_bwd", 3, "softmax"),
    "norm_backward": ("rows_backward", "layer_norm_bwd", 3, "grad_input"),
}


def rows(w):
    table, op, tensors, name = ROWS[w.family]
    count, cols = w.number("rows", "columns")
    size = SIZES[w["type"]]
    if w["stride"] != "1" or name not in w.name.lower():
        return None
    further = 8 * count + cols * size if op == "layer_norm_bwd" else 0
    return table, {"op": op, "dtype": w["type"], "rows": count, "cols": cols,
                   "bytes": tensors * count * cols * size + further}


def reduce(w):
    count, cols = w.number("rows", "columns")
    if w["stride"] != "1":
        return None
    return "rows", {"op": "reduce", "dtype": w["type"], "rows": count,
                    "cols": cols,
                    "bytes": (count * cols + count) * SIZES[w["type"]]}


CONVOLUTIONS = {"convolution_forward": ("convolution", "conv2d_fwd"),
                "convolution_dgrad": ("convolution_backward", "conv2d_bwd_input"),
                "convolution_wgrad": ("convolution_backward",
                                      "conv2d_bwd_weight")}


def convolution(w):
    table, op = CONVOLUTIONS[w.family]
    n, c, h, width, k, r, s, groups = w.number("n", "c", "h", "w", "k", "r", "s",
                                               "groups")
    (pad, pad_w), (stride, stride_w), dilation = (
        w[name].split(",") for name in ("pad", "stride", "dilation"))
    if groups != 1 or pad != pad_w or stride != stride_w or \
            dilation != ["1", "1"]:
        return None
    return table, {"op": op, "dtype": w["type"], "n": n, "c": c, "h": h,
                   "w": width, "k": k, "r": r, "s": s, "stride_h": int(stride),
                   "stride_w": int(stride), "pad_h": int(pad), "pad_w": int(pad),
                   "groups": 1, "layout": w["layout"].upper()}


def attention(w):
    b, heads, kv, queries, keys, size, value = w.number(
        "batch", "heads", "kv_heads", "queries", "keys", "head_size",
        "value_size")
    backward = w.family == "attention_backward"
    backend = BACKENDS.get(w["kernel"])
    if heads != kv or queries != keys or size != value or not backend:
        return None
    return f"attention{'_backward' if backward else ''}", {
        "op": "sdpa_bwd" if backward else "sdpa_fwd", "dtype": w["type"], "b": b,
        "hq": heads, "hkv": kv, "sq": queries, "skv": keys, "d": size,
        "causal": int(w["causal"]), "backend": backend}


FAMILIES = {"gemm": product, "elementwise": plain, "reduce": reduce,
            **dict.fromkeys(ROWS, rows),
            **dict.fromkeys(CONVOLUTIONS, convolution),
            "attention_forward": attention, "attention_backward": attention}


def shape_of(line):
    """(Table, shape) that measures the work of LINE, or None."""
    work = Work(line)
    describe = FAMILIES.get(work.family)
    if not describe or work.get("type") not in TYPES or \
            work.get("source") not in ("exact", "rule"):
        return None
    return describe(work)


class Job:
    """The shapes of a recording, what takes most of its device time first."""

    def __init__(self, memsim, run):
        self.ns = collections.Counter()     # by shape
        self.family_ns = collections.Counter()
        self.of = {}                        # (table, shape, family) by key
        for name in sorted(os.listdir(run)):
            if name.endswith(".trace"):
                self.read(memsim, os.path.join(run, name))
        if not self.family_ns:
            sys.exit(f"memsim calibrate: {run}: no recording of a job is there")

    def read(self, memsim, trace):
        done = subprocess.run([memsim, "trace", "--work", "--each", trace],
                              capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            if " ns=" not in line or line.startswith("call"):
                continue
            work = Work(line)
            if work.family in NO_OPERATORS:
                continue
            self.family_ns[work.family] += work.ns
            found = shape_of(line)
            if found:
                key = (found[0], tuple(found[1].values()))
                self.ns[key] += work.ns
                self.of[key] = (*found, work.family)

    def shapes(self):
        """(Table, shape), the longest first."""
        return [self.of[key][:2] for key, _ns in self.ns.most_common()]

    def coverage(self, tables, out):
        """Writes what share of the job's device time TABLES have rows of."""
        measured = collections.Counter()
        for key, ns in self.ns.items():
            table, shape, family = self.of[key]
            if tables[table].key(shape) in tables[table].known:
                measured[family] += ns
        total = sum(self.family_ns.values())
        out.write("memsim calibrate: of the time of the job's operators\n"
                  "  share%  measured%  work\n")
        for family, ns in self.family_ns.most_common():
            if ns >= 0.001 * total:
                out.write(f"  {100 * ns / total:6.1f}  "
                          f"{100 * measured[family] / ns:9.1f}  {family}\n")
        out.write(f"  {100:6.1f}  "
                  f"{100 * sum(measured.values()) / total:9.1f}  all\n")
