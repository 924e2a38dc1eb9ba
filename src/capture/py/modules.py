# SPDX-License-Identifier: Apache-2.0
"""Tells libmemsim.so which module is at work, and what lies where.

PyTorch calls these hooks around every module's forward and every optimizer's
step. They allocate nothing on the card, keep no module or tensor alive, and
change nothing that passes through them.
"""
import ctypes
import gc
import sys
import weakref

import torch
from torch.nn.modules import module as nn_module
from torch.optim import optimizer as optim

# enum trace_category
PARAMETER, BUFFER, GRADIENT, OPTIMIZER, INPUT = range(1, 6)

SEARCHES = 4  # for modules that a parent made on the fly

_core = ctypes.PyDLL("libmemsim.so")  # keeps the GIL: its functions are short
_enter = _core.memsim_tag_enter
_leave = _core.memsim_tag_leave
_step = _core.memsim_tag_step
_top = _core.memsim_tag_top
_storage = _core.memsim_tag_storage
_storage.argtypes = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint32
for _function in (_enter, _leave, _step, _storage):
    _function.restype = None

_is_compiling = getattr(torch.compiler, "is_dynamo_compiling",
                        torch.compiler.is_compiling)


class _Known:
    """A module that has a number."""

    __slots__ = "id", "root", "path", "ref", "searches"


_known = {}  # by id() of the module
_by_number = {}
_owners = {}  # numbers of modules by id() of their parameters
_told = {}  # where the parameters of a root were when they were told
_count = 0


def _text(name):
    """NAME in C: whatever it is, one line of UTF-8."""
    text = str(name).encode("utf-8", "backslashreplace")
    return text.replace(b"\0", b"\\0")


def _number(module, root, path):
    """Numbers MODULE, at PATH below the module numbered ROOT (0: itself)."""
    global _count
    key = id(module)
    known = _known.get(key)
    if known is None:
        _count += 1
        known = _Known()
        known.id = _count
        known.searches = 0

        def forget(_, key=key, number=_count):
            if _known.pop(key, None) is not None:
                _by_number.pop(number, None)

        known.ref = weakref.ref(module, forget)
        _known[key] = _by_number[known.id] = known
    known.root = root or known.id
    known.path = path
    _core.memsim_tag_module(known.id, known.root, _text(path))
    return known


def _children(module):
    """(path, module) for all below MODULE, each once; as named_modules() does
    it, which a subclass may have overridden."""
    seen = {id(module)}
    stack = [("", module)]
    while stack:
        prefix, parent = stack.pop()
        for name, child in list(parent.__dict__.get("_modules", {}).items()):
            if child is None or id(child) in seen:
                continue
            seen.add(id(child))
            path = f"{prefix}.{name}" if prefix else name
            yield path, child
            stack.append((path, child))


def _name_root(module):
    """MODULE was called by no other one: it names all below it."""
    root = _number(module, 0, type(module).__name__)
    for path, child in _children(module):
        _number(child, root.id, path)
    return root


def _name_below(parent, module):
    """MODULE is new, and was called by PARENT's forward."""
    if parent.searches < SEARCHES:
        parent.searches += 1
        above = parent.ref()
        for path, child in _children(above) if above is not None else ():
            if id(child) not in _known:
                if parent.root != parent.id:
                    path = f"{parent.path}.{path}"
                _number(child, parent.root, path)
        if id(module) in _known:
            return _known[id(module)]
    path = f"({type(module).__name__})"
    if parent.root != parent.id:
        path = f"{parent.path}.{path}"
    return _number(module, parent.root, path)


def _addresses(tensor):
    """Where TENSOR's storages begin on the card."""
    try:
        parts = getattr(type(tensor), "__tensor_flatten__", None)
        if parts is not None:
            for name in tensor.__tensor_flatten__()[0]:
                yield from _addresses(getattr(tensor, name))
        elif tensor.is_cuda:
            address = tensor.untyped_storage().data_ptr()
            if address:
                yield address
    except Exception:  # fake tensors, lazy parameters, functorch's wrappers
        return


def _tell(tensor, number, category):
    for address in _addresses(tensor):
        _storage(address, number, category)


def _tell_module(module, number):
    for tensor in list(module.__dict__.get("_parameters", {}).values()):
        if tensor is not None:
            _owners.setdefault(id(tensor), number)
            _tell(tensor, number, PARAMETER)
    for tensor in list(module.__dict__.get("_buffers", {}).values()):
        if isinstance(tensor, torch.Tensor):
            _tell(tensor, number, BUFFER)


def _tell_root(root):
    """Says where the parameters and buffers of ROOT's modules lie."""
    module = root.ref()
    _tell_module(module, root.id)
    for _, child in _children(module):
        known = _known.get(id(child))
        if known is not None:
            _tell_module(child, known.id)


def _sample(module):
    """Changes when MODULE's parameters move: where two of them are."""
    found = []
    stack = [module]
    while stack and len(found) < 2:
        top = stack.pop()
        found += [p for p in top.__dict__.get("_parameters", {}).values()
                  if p is not None][:1]
        stack += [m for m in top.__dict__.get("_modules", {}).values()
                  if m is not None]
    return [a for p in found for a in _addresses(p)]


def _tensors(values, depth=4):
    """The tensors in arguments: in lists, tuples, dicts and their like."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif depth and isinstance(value, (list, tuple)):
            yield from _tensors(value, depth - 1)
        elif depth and isinstance(value, dict):
            yield from _tensors(list(value.values()), depth - 1)


def _tell_inputs(root, args):
    """A hook for all modules does not get the keyword arguments; its caller
    has them."""
    kwargs = sys._getframe(2).f_locals.get("kwargs")
    if not isinstance(kwargs, dict):
        kwargs = {}
    for tensor in _tensors([args, kwargs]):
        _tell(tensor, root.id, INPUT)


def _begin(module, args):
    """A module is called that is inside no other one."""
    known = _known.get(id(module)) or _name_root(module)
    if known.root != known.id:
        pass  # a part of a model that is called by itself
    where = _sample(module)
    if _told.get(known.id) != where:
        _told[known.id] = where
        _tell_root(known)
    return known


def _before(module, args):
    if _is_compiling():
        return
    known = _known.get(id(module))
    top = _top()
    if not top:
        known = _begin(module, args)
        _tell_inputs(known, args)
    elif known is None:
        parent = _by_number.get(top)
        known = (_name_below(parent, module) if parent is not None
                 else _name_root(module))
    _enter(known.id)


def _after(module, args, result):
    if _is_compiling():
        return
    known = _known.get(id(module))
    if known is not None:
        _leave(known.id)


def _before_step(optimizer, args, kwargs):
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is not None:
                _tell(gradient, _owners.get(id(parameter), 0), GRADIENT)
    _step(1)


def _tell_state(optimizer):
    for parameter, state in optimizer.state.items():
        if not isinstance(state, dict):
            continue
        for value in state.values():
            if isinstance(value, torch.Tensor):
                _tell(value, _owners.get(id(parameter), 0), OPTIMIZER)


def _after_step(optimizer, args, kwargs):
    _step(0)
    if _told.get(id(optimizer)) != len(optimizer.state):
        _told[id(optimizer)] = len(optimizer.state)
        _tell_state(optimizer)


def start():
    _core.memsim_tag_start()
    nn_module.register_module_forward_pre_hook(_before)
    nn_module.register_module_forward_hook(_after, always_call=True)
    optim.register_optimizer_step_pre_hook(_before_step)
    optim.register_optimizer_step_post_hook(_after_step)
