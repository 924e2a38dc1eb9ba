#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of doc/evidence/values.md: which operators that decide sizes, shapes and
branches memsim computes, for which inputs.

Each operator takes tensors whose elements are known. Its result on the
simulated GPU is known where every element is, and is the CPU's.

  memsim run -q -- python value_operators.py
"""
import torch
import torch.nn.functional as F

from fuzz_values import GPU, Wrong, compare


def integers(count):
    return torch.arange(count).mul(7919).remainder(13)


def numbers(count):
    return torch.arange(count).mul(7919).remainder(1009).add(1).div(64)


INPUTS = {  # of the CPU; they are copied as they are
    "strided": lambda: (integers(96 * 64).view(96, 64), lambda t: t.t()[::2]),
    "expanded": lambda: (integers(64), lambda t: t.expand(48, 64)),
    "100,000": lambda: (integers(100000).view(100, 1000), None),
    "1,000,000": lambda: (integers(1000000).view(1000, 1000), None),
    "30,000 floats": lambda: (numbers(30000).view(30, 1000), None),
    "100,000 floats": lambda: (numbers(100000).view(100, 1000), None),
}


def integral(t):
    return t.long() if t.is_floating_point() else t


OPERATORS = {  # name: what it makes of a tensor
    "`x[mask]`, `masked_select`": lambda t: t[t > 3],
    "`nonzero`, `argwhere`, `where(mask)`": lambda t: torch.nonzero(t > 3),
    "`masked_scatter`": lambda t: t.masked_scatter(t > 3, t.clone()),
    "`repeat_interleave(n)`": lambda t: t.repeat_interleave(2, 0),
    "`repeat_interleave(counts)`": lambda t: torch.repeat_interleave(
        t[0], integral(t[0]).clamp(0, 3)),
    "`unique`": lambda t: torch.unique(t),
    "`unique_consecutive`": lambda t: torch.unique_consecutive(t),
    "`sort`, `argsort`": lambda t: t.sort(dim=-1, stable=True)[1],
    "`topk`": lambda t: t.topk(4, -1)[0],
    "`kthvalue`": lambda t: t.kthvalue(3, -1)[0],
    "`median`": lambda t: t.clone().median(-1)[0],
    "`cumsum`": lambda t: t.cumsum(-1),
    "`diff`": lambda t: t.diff(dim=-1),
    "`one_hot`": lambda t: F.one_hot(integral(t), 17),
    "`bincount`": lambda t: torch.bincount(integral(t).reshape(-1)),
    "`histc`": lambda t: torch.histc(t.float(), 13, 0, 16),
    "`isin`": lambda t: torch.isin(t, t.new_tensor([1, 5, 9])),
    "`bucketize`, `searchsorted`": lambda t: torch.bucketize(
        t.contiguous(), t.new_tensor([1, 5, 9])),
    "`sum`, `count_nonzero`": lambda t: t.sum(-1),
    "`mean`": lambda t: t.float().mean(-1),
    "`std`": lambda t: t.float().std(-1),
    "`prod`": lambda t: t[:, :3].prod(-1),
    "`max`, `min`, `amax`": lambda t: t.amax(-1),
    "`argmax`, `argmin`": lambda t: t.argmax(-1),
    "`any`, `all`": lambda t: (t > 3).any(-1),
    "`isfinite`, `isnan`": lambda t: torch.isfinite(t),
    "`equal`": lambda t: torch.eq(t, t.clone()).all(),
    "comparisons": lambda t: t > 3,
    "`where(mask, a, b)`, `masked_fill`": lambda t: torch.where(t > 3, t, -t),
    "arithmetic": lambda t: t * 3 - 1,
    "`clamp`": lambda t: t.clamp(2, 9),
    "`exp`, `log`, powers": lambda t: (t.float() + 1).log(),
    "conversions": lambda t: t.to(torch.int32),
    "`cat`, `stack`": lambda t: torch.cat([t, t], -1),
    "`gather`, `index_select`": lambda t: t.gather(
        -1, torch.zeros_like(t, dtype=torch.int64)),
    "`scatter_add`, `index_add`": lambda t: t.clone().scatter_add(
        -1, torch.zeros_like(t, dtype=torch.int64), t),
    "`tolist`, `item`": lambda t: t.new_tensor(t.reshape(-1)[-5:].tolist()),
    "matrix products": lambda t: t.float() @ t.float().t(),
    "`softmax`": lambda t: t.float().softmax(-1),
    "`multinomial`": lambda t: torch.multinomial(t.float() + 1, 1),
}


SIZED = [OPERATORS[name] for name in OPERATORS if any(
    word in name for word in ("mask]", "nonzero`,", "(counts)", "unique",
                              "bincount"))]


COUNTED = [OPERATORS[name] for name in ("`one_hot`", "`bincount`",
                                        "`repeat_interleave(counts)`")]


def outcome(operator, data, view):
    """"yes": all is known and the CPU's; "size": the size alone, which depends
    on values; "no"; "-": it takes integers."""
    if operator in COUNTED and data.is_floating_point():
        return "-"
    want = operator(view(data) if view else data)
    data = data.to(GPU)
    got = operator(view(data) if view else data)
    if want.shape != got.shape:
        return "no"
    try:
        known = compare(want, got)[1]
    except Wrong as wrong:
        return f"wrong: {wrong}"
    if bool(known.all()):
        return "yes"
    return "size" if operator in SIZED else "no"


def rows():
    made = {name: make() for name, make in INPUTS.items()}
    for name, operator in OPERATORS.items():
        yield name, [outcome(operator, *made[column]) for column in INPUTS]


def main():
    print("| operator |", " | ".join(INPUTS), "|")
    print("|---|" + "---|" * len(INPUTS))
    for name, cells in rows():
        print("|", name, "|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
