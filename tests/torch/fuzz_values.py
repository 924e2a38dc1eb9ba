#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the values of device memory against the CPU.

Random programs of operators (value_programs.py) run on the CPU and on the
simulated GPU at once. After each operator the result must have the CPU's
shape, and each element that memsim says it knows must be the CPU's; what it
does not know is counted. A program on which they differ is printed with its
seed. -o keeps how often each operator was known (bench/fuzz_values.csv).

  memsim run -q -- python fuzz_values.py [--programs N] [--seed N] [--only N]
      [-o FILE.csv]
"""
import argparse
import collections
import csv
import ctypes
import random
import sys

import torch

import value_programs

GPU = "cuda"
OPERATORS = 6  # of one program
COLUMNS = "operator", "operators", "known", "unknown", "wrong"
TRUE_MARKS = 1, 2  # VALUES_GIVEN and what a kernel wrote (values.h)


class Wrong(Exception):
    pass


def taken(tensor):
    """What memsim has of TENSOR, a GPU's: a tensor of the CPU's, and which
    elements of it are known."""
    take = ctypes.CDLL(None).memsim_values_take
    if not tensor.numel():
        return torch.empty(tensor.shape, dtype=tensor.dtype), \
            torch.ones(tensor.shape, dtype=torch.bool)
    unit = tensor.element_size()
    count = 1 + sum((size - 1) * stride for size, stride
                    in zip(tensor.shape, tensor.stride()))
    data = torch.zeros(count, dtype=tensor.dtype)
    marks = torch.zeros(count * unit, dtype=torch.uint8)
    take(ctypes.c_uint64(tensor.data_ptr()), ctypes.c_uint64(count * unit),
         ctypes.c_void_p(data.data_ptr()), ctypes.c_void_p(marks.data_ptr()))
    known = torch.isin(marks, torch.tensor(TRUE_MARKS, dtype=torch.uint8))
    known = known.view(-1, unit).all(1)
    return (data.as_strided(tensor.shape, tensor.stride()),
            known.as_strided(tensor.shape, tensor.stride()))


def tolerance(kind):
    return {torch.float64: 1e-9, torch.float32: 3e-6}.get(kind, 2e-2)


def compare(want, got):
    """Raises Wrong where an element that is known is not the CPU's; returns
    the numbers, and which are known."""
    if want.shape != got.shape or want.dtype != got.dtype:
        raise Wrong(f"{tuple(got.shape)} {got.dtype}, not "
                    f"{tuple(want.shape)} {want.dtype}")
    have, known = taken(got)
    if want.is_floating_point():
        scale = want[torch.isfinite(want)].abs().max() if \
            torch.isfinite(want).any() else 0
        near = torch.isclose(have.double(), want.double(),
                             rtol=tolerance(want.dtype),
                             atol=tolerance(want.dtype) * max(1, float(scale)),
                             equal_nan=True)
    else:
        near = have == want
    bad = known & ~near
    if bad.any():
        at = bad.nonzero()[0].tolist()
        raise Wrong(f"{int(bad.sum())} of {want.numel()} known elements, the "
                    f"first at {at}: {have[tuple(at)].item()}, not "
                    f"{want[tuple(at)].item()}")
    return have, known


def settle(want, have, known):
    """WANT with the last bits that the GPU has, of what is known: so that the
    next operator begins with the same numbers."""
    if not want.is_floating_point():
        return want
    return torch.where(known, have, want)


def is_finite(t):
    return not t.is_floating_point() or bool(
        torch.isfinite(t).all() and (not t.numel() or t.abs().max() < 1e4))


def text_of(step):
    closed = {name: cell.cell_contents for name, cell in zip(
        step.__code__.co_freevars, step.__closure__ or ())}
    words = []
    for name, x in closed.items():
        if name in ("m", "state"):
            continue
        if callable(x):
            where = getattr(x, "__code__", None)
            x = x.__name__ if x.__name__ != "<lambda>" else \
                f"line {where.co_firstlineno}"
        words.append(f"{name}={x}".replace("\n", ""))
    return f"{step.__qualname__.split('.')[0]}({', '.join(words)})"


def name_of(step):
    """The operator's name, "others" of its family for those without one."""
    closed = dict(zip(step.__code__.co_freevars, step.__closure__ or ()))
    name = getattr(closed["f"].cell_contents, "__name__", "") \
        if "f" in closed else ""
    family = step.__qualname__.split(".")[0]
    return f"{family} {'others' if name == '<lambda>' else name}".strip()


def taken_by(step):
    closed = dict(zip(step.__code__.co_freevars, step.__closure__ or ()))
    return [closed[name].cell_contents for name in "ijk" if name in closed]


class Program:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.cpu, self.gpu, self.tainted = [], [], set()
        self.lines = []
        self.taken = []  # by the operator at hand
        self.lost = []  # operators that made what is not known of what is
        self.counts = collections.Counter()
        self.name = "begin"
        self.operators = collections.Counter()  # by name and outcome

    def add(self, want, got):
        have, known = compare(want, got)
        self.counts["operators"] += 1
        outcome = "known" if bool(known.all()) else "unknown"
        self.counts[outcome] += 1
        self.operators[self.name, "operators"] += 1
        self.operators[self.name, outcome] += 1
        if not (known.all() or self.tainted or "unknown" in self.lines[-1]):
            self.lost.append(f"{self.lines[-1]} of " + ", ".join(
                f"{t.dtype} {tuple(t.shape)}" for t in self.taken))
        if not is_finite(want) or want.numel() > 1 << 22:
            return
        if not bool(known.all()):
            self.tainted.add(len(self.cpu))
        self.cpu.append(settle(want, have, known))
        self.gpu.append(got)

    def begin(self):
        for _ in range(3):
            make = value_programs.begin(self.random)
            want = make("cpu")
            self.random.seed(self.random.random())
            state = self.random.getstate()
            got = make(GPU)
            self.random.setstate(state)
            self.lines.append(f"{len(self.cpu)}: {want.dtype} "
                              f"{tuple(want.shape)} {want.stride()}")
            self.add(want, got)

    def step(self):
        step = value_programs.draw(self.random, self.cpu, self.tainted)
        state = self.random.getstate()
        self.lines.append(f"{len(self.cpu)}: {text_of(step)}")
        self.taken = [self.cpu[i] for i in taken_by(step)]
        self.name = name_of(step)
        try:
            want = step("cpu", self.cpu)
        except (RuntimeError, IndexError, ValueError, TypeError):
            self.lines.pop()
            return
        try:
            got = step(GPU, self.gpu)
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            if "not implemented" in str(error) or "not support" in str(error):
                self.lines.pop()
                return
            raise Wrong(f"raised {error}")
        self.random.setstate(state)
        self.random.random()
        self.add(want, got)

    def run(self):
        self.begin()
        for _ in range(OPERATORS):
            self.step()


def run(programs, seed, only=None, unknown=False):
    """Runs PROGRAMS programs; returns how many operators were known and so on,
    also by operator and outcome, and the text of each program that went
    wrong."""
    counts, wrong = collections.Counter(), []
    for i in range(programs) if only is None else [only]:
        program = Program(seed * 1000003 + i)
        try:
            program.run()
        except Wrong as what:
            program.operators[program.name, "wrong"] += 1
            wrong.append("\n  ".join([f"program {i} of seed {seed}:"]
                                     + program.lines + [str(what)]))
        if only is not None:
            print("\n".join(program.lines))
        counts += program.counts + program.operators
        if unknown and program.lost:
            print(f"program {i}: {program.lost[0]}")
        if len(wrong) >= 20:
            break
    counts["programs"] = i + 1
    return counts, wrong


def keep(path, counts, seed):
    names = sorted({key[0] for key in counts if isinstance(key, tuple)})
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.write(f"# {counts['programs']} programs of seed {seed} with PyTorch "
                   f"{torch.__version__}.\n# tests/torch/fuzz_values.py -o makes "
                   "this.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in names:
            writer.writerow([name] + [counts[name, x] for x in COLUMNS[1:]])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--programs", type=int, default=10000)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", type=int, help="run the program of this number")
    a.add_argument("-o", "--output", help="the CSV file of each operator")
    a.add_argument("--unknown", action="store_true",
                   help="print operators that made what is not known of "
                   "what is")
    a = a.parse_args()
    counts, wrong = run(a.programs, a.seed, a.only, a.unknown)
    if a.output:
        keep(a.output, counts, a.seed)
    for text in wrong:
        print(text)
    print(", ".join(f"{counts[x]} {x}" for x in (
        "programs", "operators", "known", "unknown")), f"{len(wrong)} wrong",
        sep=", ")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
