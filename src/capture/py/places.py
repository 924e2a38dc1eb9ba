# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so the calls in the user's files that advice changes: where an
optimizer is made, the blocks of a list are called, a trainer gets its options.

While the script runs, only where a call stands is kept, once for each call. When
it ends, its file is read, and the parts of each call become one text. Python before
3.11 has no exact positions: there is no text.
"""
import ast
import atexit
import collections
import ctypes
import functools
import inspect
import json
import os
import sys
import sysconfig
import types

import torch

ROOM = 15 << 10  # of the text; struct replay_trace_info has as much
MOST = 64  # calls that are looked at
LONGEST = 2000  # text of a call, in characters
LOOKS = frozenset((2, 3, 4, 5, 6, 9, 17, 33))  # calls of models at which
HELD = 10000  # values of a list are looked at,
FRAMES = 8  # in so many functions;
GROWTHS = 2  # a list that grew so often grows
ALONE = 3  # references to what a frame alone keeps: its own and two of ours

after_import = None  # sitecustomize.py's
_LIBRARY = globals().get("LIBRARY", "libmemsim.so")  # as sitecustomize.py says
_core = ctypes.PyDLL(_LIBRARY)
_here = os.path.dirname(os.path.abspath(__file__))
_libraries = _here,  # where no file is the user's own
_seen = {}  # what is known of a call, by code and instruction
_held = {}  # tensors in a list or dict, and how often there were more
_kept = {}  # files in which those that grow may be filled, by name
_calls = _steps = 0  # of models, of optimizers
_denied = set()  # calls that an optimizer's step followed
_pending = set()  # evaluations, since a model was last called to train


def _is_library(code):
    name = code.co_filename
    return name[:1] == "<" or name.startswith(_libraries)


def _find_libraries():
    """Beside those of Python: what packages were installed to."""
    global _libraries
    installed = [path for path in sys.path if os.path.isdir(path)
                 and any(name.endswith(".dist-info")
                         for name in os.listdir(path))]
    _libraries = tuple({os.path.join(path, "") for path in (
        sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"),
        os.path.dirname(os.path.dirname(torch.__file__)), _here, *installed)})


@functools.lru_cache(maxsize=None)
def _absolute(name):
    return os.path.abspath(name)


def _path(code):
    """Of the file of CODE, relative to the folder that the script was in when
    it was first asked. torch may have been imported in another one (warm.py)."""
    return _absolute(code.co_filename)


def _user_frame(frame):
    """The innermost frame of the user's own at or around FRAME."""
    while frame is not None and _is_library(frame.f_code):
        frame = frame.f_back
    return frame


def _locals(frame):
    """FRAME's variables. Up to Python 3.12 the frame of a function keeps what
    f_locals copies, and tensors with it: it is emptied, unless the script has
    that dictionary as well, by locals()."""
    kept = frame.f_locals
    found = dict(kept)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and \
            sys.version_info < (3, 13) and sys.getrefcount(kept) <= ALONE:
        kept.clear()
    return found


def _above(frame, subject):
    """The first frame around FRAME that is no method of SUBJECT's, nor ours."""
    while frame is not None and _is_library(frame.f_code) and (
            frame.f_code.co_filename.startswith(_here)
            or _locals(frame).get("self") is subject):
        frame = frame.f_back
    return frame


def see(role, frame, subject, **facts):
    """The user's code calls SUBJECT, or a method of its, inside FRAME, as ROLE;
    FACTS go into the call's text. Returns the call, or None: a library makes
    it."""
    user = _user_frame(frame)
    if user is None:
        return None
    key = user.f_code, user.f_lasti, role
    if key not in _seen:
        if len(_seen) == MOST or _above(frame, subject) is not user:
            return None
        _path(user.f_code)
        _seen[key] = facts
    return key


def see_member(frame, member, known):
    """MEMBER, KNOWN in modules.py, of a list is called, by the user's code or
    by a container of torch's that it calls."""
    caller = _above(frame, member)
    if caller is None:
        return
    container = _locals(caller).get("self")
    if isinstance(container, torch.nn.Sequential):
        see("sequence", caller, container, member=known)
    else:
        see("block", frame, member, member=known)


def see_model(frame, model):
    """MODEL is called, and gradients are recorded."""
    if model.training:
        _pending.clear()
        return
    key = see("evaluation", frame, model)
    if key is not None:
        _pending.add(key)


def _holders(frame):
    """(files, name, value) that the user's functions around FRAME have at hand:
    what is theirs, and what the objects in it have."""
    paths = []
    while frame is not None and len(paths) < FRAMES:
        if not _is_library(frame.f_code):
            paths.append(_path(frame.f_code))
            for name, value in _locals(frame).items():
                yield paths, name, value
                for below in vars(value).items() if _is_object(value) else ():
                    yield paths, *below
        frame = frame.f_back


def _is_object(value):
    return hasattr(value, "__dict__") and not isinstance(
        value, (type, types.ModuleType, types.FunctionType, torch.Tensor))


def _on_card(values):
    return sum(isinstance(v, torch.Tensor) and v.is_cuda for v in values)


def look(frame, learns):
    """A model is called: which lists and dicts have more of the card's tensors
    than at the call before? LEARNS: to be trained; then what is kept until an
    optimizer's step may be needed for it."""
    global _calls
    _calls += 1
    if _calls not in LOOKS:
        return
    steps = _steps if learns else -_calls
    for path, name, value in _holders(frame):
        if type(value) is dict and name != "__dict__":
            count = _on_card(list(value.values())[:HELD])
        elif isinstance(value, (list, collections.deque)):
            count = _on_card(list(value)[:HELD])
        else:
            continue
        before, growths, then = _held.get((name, id(value)), (count, 0, steps))
        if then != steps:
            growths += count > before
            before = count
        _held[name, id(value)] = before, growths, steps
        if growths >= GROWTHS:
            _kept.setdefault(name, set()).update(path)


def see_step():
    """An optimizer makes a step: what was called in evaluation's mode was to
    train it."""
    global _steps
    _steps += 1
    _denied.update(_pending)
    _pending.clear()


def _initialized():
    return (torch.distributed.is_available()
            and torch.distributed.is_initialized())


def _after_call(owner, name, role, facts=lambda *_, **__: {}):
    """Has calls of OWNER's method NAME seen as ROLE, with the FACTS of its
    arguments (None: not this one)."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def seen(self, *args, **named):
        try:
            more = facts(self, *args, **named)
            if more is not None:
                see(role, sys._getframe(), self, **more)
        except Exception:  # facts of arguments that fail the call, too
            pass
        return function(self, *args, **named)

    setattr(owner, name, seen)


# What models have that checkpoint themselves.
SWITCHES = "gradient_checkpointing_enable", "set_grad_checkpointing"


def _switches(frame):
    """By name in FRAME, which may be None: how a model's checkpointing is
    switched on."""
    found = _locals(frame) if frame else {}
    return {name: switch for name, value in found.items()
            for switch in SWITCHES if hasattr(type(value), switch)}


def _made(optimizer, *_, **__):
    return {"class": type(optimizer).__name__, "distributed": _initialized(),
            "switches": _switches(_user_frame(sys._getframe()))}


def _wrapped(*_, **__):
    return {"switches": _switches(_user_frame(sys._getframe()))}


def _zeroed(_, set_to_none=True):
    return None if set_to_none else {}


# --- at the end -------------------------------------------------------------


def _span(code, instruction):
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return None
    found = list(positions())[instruction // 2]
    line, end_line, column, end_column = found
    return None if None in found else (line, column, end_line, end_column)


def _span_of(node):
    return [node.lineno, node.col_offset, node.end_lineno, node.end_col_offset]


class _File:
    """A file of the user's, as it was parsed: its calls by where they stand."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.lines = self.text.encode().split(b"\n")
        tree = ast.parse(self.text)
        self.calls = {}
        self.kept = []  # (name of a list or dict, what is put into it)
        self._read(tree, None)
        self.top = self._top(tree)

    def _read(self, node, statement):
        if isinstance(node, ast.stmt):
            statement = node
        if isinstance(node, ast.Call):
            self.calls[tuple(_span_of(node))] = node, statement
            function = node.func
            if (isinstance(function, ast.Attribute) and len(node.args) == 1
                    and function.attr in ("append", "appendleft")):
                self._keep(function.value, node.args[0])
        if isinstance(node, ast.Assign) and isinstance(node.targets[0],
                                                       ast.Subscript):
            self._keep(node.targets[0].value, node.value)
        for child in ast.iter_child_nodes(node):
            self._read(child, statement)

    def _keep(self, holder, value):
        name = getattr(holder, "attr", getattr(holder, "id", None))
        self.kept.append((name, value))

    @staticmethod
    def _top(tree):
        """The line before which an import can stand."""
        for node in tree.body:
            is_text = (isinstance(node, ast.Expr)
                       and isinstance(node.value, ast.Constant)
                       and isinstance(node.value.value, str))
            if not is_text and getattr(node, "module", "") != "__future__":
                return min([node.lineno] + [
                    d.lineno for d in getattr(node, "decorator_list", ())])
        return 1

    def between(self, line, column, end_line, end_column):
        rows = self.lines[line - 1:end_line]
        rows[-1] = rows[-1][:end_column]
        rows[0] = rows[0][column:]
        return b"\n".join(rows).decode()

    def part(self, node, name=None):
        """NODE, as the text has it, and where; with NAME= before it."""
        span = _span_of(node)
        if isinstance(node, ast.keyword) and node.arg is None:
            name = "**"
        return {"text": self.between(*span), "at": span, "name": name or ""}


def _model_of(file, call):
    """M of the M.parameters() in CALL's arguments, if there is one alone."""
    found = {file.part(n.func.value)["text"] for n in ast.walk(call)
             if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
             and n.func.attr in ("parameters", "named_parameters")}
    return found.pop() if len(found) == 1 else None


def _describe(file, call, statement):
    """What advice can change of CALL."""
    told = {"at": _span_of(call), "text": file.between(*_span_of(call)),
            "function": file.part(call.func),
            "arguments": [file.part(a) for a in call.args] +
                         [file.part(k, k.arg) for k in call.keywords],
            "top": file.top}
    if len(told["text"]) > LONGEST:
        return None
    line = file.lines[statement.lineno - 1]
    if not line[:statement.col_offset].strip():
        told["statement"] = [statement.lineno, statement.col_offset]
    return told


def _place(files, key, facts):
    code, instruction, role = key
    path = _path(code)
    span = _span(code, instruction)
    if span is None:
        return None
    call, statement = files(path).calls.get(span, (None, None))
    told = call and _describe(files(path), call, statement)
    if not told:
        return None
    model = _model_of(files(path), call)
    if role == "wrapped" and call.args:
        model = files(path).part(call.args[0])["text"]
    if model:
        told["model"] = model
    if "member" in facts:  # by now its model may be part of another one
        told["list"] = facts.pop("member").path.rpartition(".")[0]
    roles = [role] + ["sharable"] * facts.pop("distributed", False)
    switch = facts.pop("switches", {}).get(model)
    if switch:
        told["switch"] = switch
        roles.append(f"{role} of what checkpoints itself")
    return {"roles": roles, "file": path, **facts, **told}


def _kept_places(files):
    """Where tensors are put into lists that grow; those of which it is not one
    place alone are left out."""
    for name, paths in _kept.items():
        found = [(path, value) for path in paths
                 for holder, value in files(path).kept if holder == name]
        if len(found) != 1:
            continue
        path, value = found[0]
        part = files(path).part(value)
        is_plain = isinstance(value, (ast.Name, ast.Attribute, ast.Call,
                                      ast.Subscript))
        yield {"roles": ["kept"], "file": path, "top": files(path).top, **part,
               "operand": part["text"] if is_plain else f"({part['text']})"}


def _all_places():
    files = functools.lru_cache(_File)
    for key, facts in _seen.items():
        if key in _denied:
            continue
        try:
            yield _place(files, key, facts)
        except (OSError, SyntaxError, ValueError, RecursionError):
            continue  # of no such file any more, or changed since
    try:
        yield from _kept_places(files)
    except (OSError, SyntaxError, ValueError, RecursionError):
        pass  # likewise


def _tell():
    places, room = [], ROOM
    for place in _all_places():
        text = json.dumps(place, separators=(",", ":"))
        room -= len(text) + 1
        if place and room > 0:
            places.append(text)
    if places:
        _core.memsim_process_setting(
            f"places=[{','.join(places)}]".encode())


def _at_exit():
    try:
        _tell()
    except KeyboardInterrupt:
        pass  # the user's second


def start():
    _find_libraries()
    _after_call(torch.optim.Optimizer, "__init__", "optimizer", _made)
    _after_call(torch.optim.Optimizer, "zero_grad", "zero_grad", _zeroed)
    _after_call(torch.autocast, "__init__", "autocast")
    _after_call(torch.nn.parallel.DistributedDataParallel, "__init__",
                "wrapped", _wrapped)
    for module, path, method, role in (
            ("transformers.training_args", "TrainingArguments",
             "__post_init__", "training_arguments"),
            ("lightning.pytorch.trainer.trainer", "Trainer", "__init__",
             "trainer"),
            ("pytorch_lightning.trainer.trainer", "Trainer", "__init__",
             "trainer")):
        _follow(module, path, method, role)
    atexit.register(_at_exit)


def _follow(module, name, method, role):
    def patch():
        _after_call(getattr(sys.modules[module], name), method, role)
    after_import(module, patch)
