# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so what a script wants of a flag that it reads: that no error is
raised. An `assert`, and an `if` whose block only raises, are found in Python's
bytecode, at the instruction that reads the flag.
"""
import ctypes
import dis
import sys

LONGEST = 60  # instructions of a block that raises, its message among them
BETWEEN = ("CACHE", "TO_BOOL", "NOP", "EXTENDED_ARG", "NOT_TAKEN")

after_import = None  # sitecustomize.py's
_LIBRARY = globals().get("LIBRARY", "libmemsim.so")  # as sitecustomize.py says
_known = {}  # what is wanted, by code and instruction: 1, 0 or -1, not known


def _raises(code, at):
    """Whether what stands from place AT on ends in an error, without a branch."""
    for one in code[at:at + LONGEST]:
        if one.opname == "RAISE_VARARGS":
            return True
        if "JUMP" in one.opname or one.opname.startswith(("RETURN", "FOR_")):
            return False
    return False


def _wanted(code, offset):
    """The answer with which the instruction at OFFSET of CODE raises nothing."""
    steps = list(dis.get_instructions(code))
    place = {one.offset: i for i, one in enumerate(steps)}
    at, turned = sum(one.offset <= offset for one in steps) - 1, False
    if not steps[at].opname.startswith("POP_JUMP"):
        at += 1  # a call, or the instruction that makes a bool
    while steps[at].opname in BETWEEN or steps[at].opname == "UNARY_NOT":
        turned ^= steps[at].opname == "UNARY_NOT"
        at += 1
    branch = steps[at]
    if not branch.opname.startswith("POP_JUMP") or "NONE" in branch.opname:
        return -1
    goes = _raises(steps, place.get(branch.argval, len(steps)))
    stays = _raises(steps, at + 1)
    if goes == stays:
        return -1
    jumps_if = branch.opname.endswith("TRUE")
    return int(jumps_if == stays) ^ turned


def _look():
    """What the innermost function wants of the flag that it reads now."""
    try:
        frame = sys._getframe(1)
        key = frame.f_code, frame.f_lasti
        if key not in _known:
            _known[key] = _wanted(*key)
        return _known[key]
    except Exception:  # a Python that we do not know
        return -1


def start():
    global _called
    _called = ctypes.CFUNCTYPE(ctypes.c_int)(_look)
    ctypes.CDLL(_LIBRARY).memsim_check_follow(_called)
