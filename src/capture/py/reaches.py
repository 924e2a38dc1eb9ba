# SPDX-License-Identifier: Apache-2.0
"""How much of the memory behind each argument a kernel of Triton's can reach.

By its first intermediate representation (ttir), which stores.py reads. Two
bounds for each argument that is a pointer: the bytes that the loads and stores
of one program name, and the bytes between the lowest and the highest address
that any program can name, where a remainder or a constant limits it. Masks are
not looked at, so that less may be reached. An address that several loads or
stores name alike counts once.
"""
import math
import re

UNLIMITED = (1 << 64) - 1

_ANY = (-math.inf, math.inf)
_VALUE = re.compile(r"%[\w$.-]+")
_PAIR = re.compile(r"(%[\w$.-]+) = %[\w$.-]+")
_RESULT = re.compile(r"(%[\w$.-]+) = ([\w.]+)\s*(.*)")
_NUMBER = re.compile(r"(?:dense<)?(-?\d+)>?\s*:")
_RANGE = re.compile(r"end = (-?\d+).*start = (-?\d+)")
_FOR = re.compile(r"scf\.for (\S+) = (\S+) to (\S+) step (\S+)")
_POINTERS = re.compile(r"(?:tensor<([\dx]+)x)?!tt\.ptr<[a-z]+(\d+)\w*>")
_ACCESS = re.compile(r"tt\.(load|store|atomic_rmw|atomic_cas)\b")
_SAME = {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans",
         "arith.extsi"}
_MOVED = _SAME | {"tt.bitcast"}
_HARMLESS = _SAME | {"tt.addptr", "tt.bitcast", "arith.select", "scf.for",
                     "scf.if", "scf.yield", "scf.while", "scf.condition"}


def _size(bits):
    """Of an element in bytes."""
    return max(1, int(bits) // 8)


def _times(a, b):
    return 0 if a == 0 or b == 0 else a * b


def _product(a, b):
    ends = [_times(x, y) for x in a for y in b]
    return min(ends), max(ends)


def _quotient(a, b):
    if b[0] != b[1] or not 0 < b[0] < math.inf:
        return _ANY
    return tuple(x if math.isinf(x) else int(x / b[0]) for x in a)


def _remainder(a, b):
    if b[0] != b[1] or not 0 < b[0] < math.inf:
        return _ANY
    most = b[0] - 1
    return (0, min(a[1], most)) if a[0] >= 0 else (-most, most)


def _union(a, b):
    return min(a[0], b[0]), max(a[1], b[1])


_ARITHMETIC = {
    "arith.addi": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "tt.addptr": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "arith.subi": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "arith.muli": _product,
    "arith.divsi": _quotient,
    "arith.remsi": _remainder,
    "arith.minsi": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "arith.maxsi": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
}


class _Reach:
    """FLOW: which arguments each value points to, once that is known."""

    def __init__(self, flow):
        self.flow = flow
        self.between = {x: (0, 0) for x, to in flow.of.items() if to}
        self.same = {}  # values that are computed alike have one number
        self.numbers = {}
        self.turns = [1]  # of the loops that are open
        self.bytes = {}  # argument: {number of the address: bytes}
        self.span = {}  # argument: from the lowest to the highest byte

    def interval(self, name):
        return self.between.get(name, _ANY)

    def number(self, text):
        return self.numbers.setdefault(text, len(self.numbers))

    def names(self, text):
        return [x.split("#")[0] for x in _VALUE.findall(text)]

    def unlimited(self, names):
        for argument in self.flow.union(names):
            self.bytes.setdefault(argument, {})[None] = math.inf
            self.span[argument] = _ANY

    def forget(self, names):
        """Another loop may have had values of these names."""
        for name in names:
            self.between.pop(name, None)
            self.same.pop(name, None)

    def loop(self, text):
        """Into a loop: how often it turns, and what its variable can be."""
        found = _FOR.search(text)
        if not found:
            self.turns.append(math.inf)
            return
        variable, *bounds = found.groups()
        self.forget(_PAIR.findall(text))
        first, last, step = (self.interval(x) for x in bounds)
        turns = math.inf
        if step[0] > 0 and math.isfinite(last[1] - first[0]):
            turns = max(0, -(-(last[1] - first[0]) // step[0]))
        self.turns.append(_times(self.turns[-1], turns))
        self.between[variable] = (first[0], max(first[0], last[1] - 1))
        self.same[variable] = self.number("for " + " ".join(
            str(self.same.get(x, x)) for x in bounds))

    def access(self, text):
        names = self.names(text)
        found = _POINTERS.search(text.rsplit(" : ", 1)[-1])
        if not names or not found:
            self.unlimited(names)
            return
        count = math.prod(int(x) for x in (found[1] or "1").split("x"))
        key = self.same.get(names[0], names[0])
        low, high = self.interval(names[0])
        for argument in self.flow.union(names[:1]):
            known = self.bytes.setdefault(argument, {})
            known[key] = max(known.get(key, 0),
                             _times(count * _size(found[2]), self.turns[-1]))
            self.span[argument] = _union(
                self.span.get(argument, (math.inf, -math.inf)),
                (low * _size(found[2]), (high + 1) * _size(found[2])))

    def result(self, name, operation, rest):
        names = self.names(rest)
        self.between[name] = self.computed(operation, rest, names)
        if operation in _ARITHMETIC or operation in _SAME \
                or operation in ("arith.constant", "tt.make_range",
                                 "tt.get_program_id"):
            self.same[name] = self.number(operation + _VALUE.sub(
                lambda x: str(self.same.get(x[0], x[0])), rest))

    def computed(self, operation, rest, names):
        """The least and the most that the result of OPERATION can be."""
        ends = [self.interval(x) for x in names]
        if operation == "arith.constant":
            found = _NUMBER.match(rest)
            return (int(found[1]),) * 2 if found else _ANY
        if operation == "tt.make_range":
            found = _RANGE.search(rest)
            return (int(found[2]), int(found[1]) - 1) if found else _ANY
        if operation == "tt.get_program_id":
            return 0, math.inf
        if operation in _ARITHMETIC and len(ends) == 2:
            return _ARITHMETIC[operation](*ends)
        if operation == "arith.select" and len(ends) == 3:
            return _union(*ends[1:])
        if operation == "tt.bitcast" and len({
                _size(x) for _, x in _POINTERS.findall(rest)}) != 1:
            return _ANY
        return ends[0] if operation in _MOVED and ends else _ANY

    def line(self, text):
        found = _RESULT.match(text)
        if text.startswith("%"):
            self.forget(self.names(text.split(" = ")[0]))
        operation, rest = (found[2], found[3]) if found \
            else ((text.split() or [""])[0], text)
        if text.startswith("}") and len(self.turns) > 1:
            self.turns.pop()
        if text.endswith("{"):
            if "scf.if " in text or text.startswith("} else") \
                    or text.endswith("({"):
                self.turns.append(self.turns[-1])
            else:
                self.loop(text)
        elif _ACCESS.match(operation):
            self.access(rest)
        elif operation not in _HARMLESS and "!tt.ptr" in rest:
            self.unlimited(self.names(rest))
        if found:
            self.result(found[1], operation, rest)

    def of(self, argument):
        known = sum(self.bytes.get(argument, {}).values())
        low, high = self.span.get(argument, (0, 0))
        return tuple(UNLIMITED if not x < UNLIMITED else int(x)
                     for x in (known, high - low))


def reached(flow, arguments, lines):
    """(Bytes of a program, bytes in all) for each of so many ARGUMENTS;
    UNLIMITED where there is no bound."""
    reach = _Reach(flow)
    for line in lines:
        reach.line(line)
    return [reach.of(x) for x in range(arguments)]


def start():
    """stores.py asks."""
