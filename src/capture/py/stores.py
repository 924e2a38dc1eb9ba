# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so which arguments Triton's kernels store to, and how much
of what these point to they can reach (reaches.py).

Triton keeps the text of its first intermediate representation (ttir) beside the
code. There each store names an address, which is followed back to the
function's arguments: every result of an operation may point where its operands
do. Where that does not lead to an argument, nothing is said of the kernel.
"""
import ctypes
import os
import re
import sys

_FUNCTION = re.compile(r"tt\.func public @[\w.$]+\((.*)\)[^()]*\{\s*$")
_ARGUMENT = re.compile(r"(%[\w$.-]+)\s*:\s*(![\w.]+|\w+)")
_VALUE = re.compile(r"%[\w$.-]+")
_STORE = re.compile(r"\b[\w.]+\.[\w.]*(?:store|atomic|scatter|descriptor_reduce)")
_PAIR = re.compile(r"(%[\w$.-]+) = (%[\w$.-]+)")


after_import = None  # sitecustomize.py's


class _Unknown(Exception):
    pass


class _Flow:
    """What each value may point to: a set of arguments' numbers."""

    def __init__(self, arguments):
        self.of = {name: {number} if kind.startswith("!tt.ptr") else set()
                   for number, (name, kind) in enumerate(arguments)}
        self.stored = set()
        self.regions = []  # results of the operations that are open

    def union(self, names):
        return set().union(*(self.of.get(x, ()) for x in names))

    def line(self, text):
        results, rest = text.split(" = ", 1) if text.startswith("%") \
            else ("", text)
        names = [x.split("#")[0] for x in _VALUE.findall(rest)]
        made = [x.split("#")[0] for x in _VALUE.findall(results)]
        for inner, outer in _PAIR.findall(rest):  # iter_args
            self.of.setdefault(inner, set()).update(self.union([outer]))
        if rest.startswith("tt.call"):
            raise _Unknown
        if _STORE.match(rest):
            target = self.union(names[:1])
            if not target:
                raise _Unknown
            self.stored |= target
        elif rest.startswith("scf.yield") and self.regions:
            made = self.regions[-1]
        if not rest.startswith("tt.load"):
            for x in made:
                self.of.setdefault(x, set()).update(self.union(names))
        if rest.startswith("}") and self.regions:  # "} else {" opens it again
            made = self.regions.pop()
        if rest.endswith("{"):
            self.regions.append(made)


def _without_places(line):
    return re.sub(r"\s*loc\((?:#\w+|\"[^\"]*\"\(#\w+\)|unknown)\)", "",
                  line).strip()


def followed(ttir):
    """What the values of a kernel may point to, how many arguments it has, and
    its lines; None: unknown."""
    lines = [_without_places(x) for x in ttir.splitlines()]
    starts = [i for i, x in enumerate(lines) if x.startswith("tt.func")]
    if len(starts) != 1:
        return None
    head = _FUNCTION.match(lines[starts[0]])
    if not head:
        return None
    arguments = _ARGUMENT.findall(re.sub(r"\{[^{}]*\}", "", head.group(1)))
    if any(kind.startswith("!tt.tensordesc") for _, kind in arguments):
        return None  # several of the kernel's
    flow, lines = _Flow(arguments), lines[starts[0] + 1:]
    try:
        for _ in range(2):  # what a loop yields reaches its next turn
            for line in lines:
                flow.line(line)
    except _Unknown:
        return None
    return flow, len(arguments), lines


def arguments_stored(ttir):
    """Bit i: the kernel stores to what argument i points to. None: unknown."""
    found = followed(ttir)
    return found and sum(1 << number for number in found[0].stored)


def _tell(library, name, ttir):
    found = followed(ttir)
    if found is None:
        return
    library.memsim_kernel_stores(name, ctypes.c_uint64(
        sum(1 << number for number in found[0].stored)))
    reached = sys.modules["_memsim_reaches"].reached(*found)
    numbers = [x for pair in reached for x in pair]
    library.memsim_kernel_reaches((ctypes.c_uint64 * len(numbers))(*numbers),
                                  ctypes.c_uint32(len(reached)))


def _telling(original, text_of):
    """ORIGINAL, which loads a kernel, and says before what it stores to."""
    library = ctypes.PyDLL("libmemsim.so")

    def load(self, *args, **kwargs):
        try:
            _tell(library, self.name.encode(), text_of(self))
        except Exception:  # a Triton that we do not know
            pass
        try:
            return original(self, *args, **kwargs)
        finally:
            library.memsim_kernel_stores(b"", ctypes.c_uint64(0))
    return load


def _beside(path):
    with open(os.path.splitext(path)[0] + ".ttir") as file:
        return file.read()


def _wrap(module, owner, name, text_of):
    owner = getattr(sys.modules.get(module), owner, None)
    if owner is not None and hasattr(owner, name):
        setattr(owner, name, _telling(getattr(owner, name), text_of))


def _triton():
    _wrap("triton.compiler.compiler", "CompiledKernel", "_init_handles",
          lambda kernel: kernel.asm["ttir"])


def start():
    after_import("triton.compiler.compiler", _triton)
    for module, owner in (
            ("torch._inductor.runtime.static_cuda_launcher",
             "StaticallyLaunchedCudaKernel"),
            ("torch._inductor.runtime.static_triton_launcher",
             "StaticallyLaunchedTritonKernel")):
        after_import(module, lambda m=module, o=owner: _wrap(
            m, o, "load_kernel", lambda kernel: _beside(kernel.cubin_path)))
