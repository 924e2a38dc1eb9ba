# SPDX-License-Identifier: Apache-2.0
"""Marks the calls of the function that --step-mark names: each is a step.

A module's function is replaced when the module has been imported. Nobody says
when the script itself has defined one, or when a module imports its parts late, so
until then each call that the script makes looks for it (sys.settrace).
"""
import ctypes
import functools
import inspect
import os
import sys
import threading
import types

after_import = None  # sitecustomize.py's

_LIBRARY = globals().get("LIBRARY", "libmemsim.so")  # as sitecustomize.py says
_thread = threading.local()
_name = os.environ.get("MEMSIM_STEP_MARK", "")
_parts = _name.split(".")
_done = False


@functools.lru_cache(maxsize=None)
def _core():
    core = ctypes.PyDLL(_LIBRARY)
    core.memsim_step_mark.restype = None
    return core


def _begin():
    _thread.inside = True
    _core().memsim_step_mark(_name.encode("utf-8", "replace"))


def _end():
    _thread.inside = False
    _core().memsim_step_mark(None)


def _inside():
    return getattr(_thread, "inside", False)


def _marked(function):
    @functools.wraps(function)
    def marked(*args, **kwargs):
        if _inside():
            return function(*args, **kwargs)
        _begin()
        try:
            return function(*args, **kwargs)
        finally:
            _end()
    return marked


def _member(owner, name, lazy):
    """What OWNER, a module or a class, has as NAME; None: nothing. LAZY: a module
    that imports its parts when they are asked for may do so."""
    if isinstance(owner, type):
        return inspect.getattr_static(owner, name, None)
    if not isinstance(owner, types.ModuleType):
        return None
    if not lazy:
        return vars(owner).get(name)
    try:
        return getattr(owner, name, None)
    except Exception:  # of the program's __getattr__
        return None


def _install(owner, path, lazy=False):
    """Replaces the function at PATH below OWNER, and returns it; None: there is
    no such function, or not yet."""
    global _done
    for part in path[:-1]:
        owner = _member(owner, part, lazy)
        if not isinstance(owner, type):
            return None
    function = _member(owner, path[-1], lazy) if path else None
    kind = type(function)
    if kind in (staticmethod, classmethod):
        function = function.__func__
    if _done or not callable(function) or isinstance(function, type):
        return None
    _done = True
    marked = _marked(function)
    setattr(owner, path[-1],
            kind(marked) if kind in (staticmethod, classmethod) else marked)
    return function


def _install_anywhere(script):
    file = os.path.basename(getattr(script, "__file__", None) or "")
    own = _parts[0] in ("__main__", os.path.splitext(file)[0])
    found = _install(script, _parts[1:] if own else _parts)
    for count in range(1, len(_parts)):
        module = sys.modules.get(".".join(_parts[:count]))
        found = found or _install(module, _parts[count:], lazy=True)
    return found


def _watch_first(_frame, event, _arg):
    """The call that found the function is its first one."""
    if event == "return":
        _end()
        sys.settrace(None)
    return _watch_first


def _watch(frame, _event, _arg):
    script = sys.modules.get("__main__")
    if _done:
        if not _inside():  # _watch_first waits for the end of the first call
            sys.settrace(None)
    elif (script is not None and frame.f_back is not None
          and frame.f_back.f_globals is script.__dict__):
        function = _install_anywhere(script)
        if getattr(function, "__code__", None) is frame.f_code:
            frame.f_trace_lines = False
            _begin()
            return _watch_first
        if function is not None:
            sys.settrace(None)
    return None


def _follow(count):
    """The module that the first COUNT parts name has been imported."""
    _install(sys.modules[".".join(_parts[:count])], _parts[count:])


def start():
    for count in range(1, len(_parts)):
        after_import(".".join(_parts[:count]),
                     functools.partial(_follow, count))
    if sys.gettrace() is None:
        sys.settrace(_watch)
