# SPDX-License-Identifier: Apache-2.0
"""The end of a program that a server's process runs (warm_server.py): what
Python does at an interpreter's end, for what the program made, where that shows.
What the server had imported stays as it is: to take PyTorch apart costs four times
what a small program does.
"""
import atexit
import ctypes
import gc
import io
import os
import signal
import socket
import sys
import threading
import weakref

_server = {}  # modules of the server, by name
_objects = gc.get_objects  # whatever the program puts in its place


def begin():
    """Called before the program: all that there is belongs to the server. Its
    objects stay out of the garbage collector's lists until the first full
    collection, which would touch, and so copy, every page of them."""
    _server.update(sys.modules)
    gc.callbacks.append(_collection)


def _collection(phase, info):
    if phase == "start" and info["generation"] == 2:
        _take_all()


def _take_all():
    if _collection in gc.callbacks:
        gc.callbacks.remove(_collection)
        gc.unfreeze()


def status_of(code):
    """The exit status for a SystemExit's CODE; what is no number is printed."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xff if -1 << 63 <= code < 1 << 63 else 0xff
    sys.stdout.flush()
    print(code, file=sys.stderr)
    return 1


def end(status):
    """Ends this process with STATUS; returns where the interpreter has to do it:
    there are other threads, output that cannot be written, or process groups,
    whose own end says something."""
    threading._shutdown()
    atexit._run_exitfuncs()
    _leave_signals()
    if len(sys._current_frames()) == 1 and not _has_groups() and _flush():
        if _has_ends():
            _clear_modules()
        if _flush():
            ctypes.CDLL(None).fflush(None)
            os._exit(status)  # libraries' destructors need an interpreter's end
    gc.unfreeze()


def _leave_signals():
    """As _PySignal_Fini() of Python's signalmodule.c: from here on a Ctrl-C ends
    the process and says nothing."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def _has_groups():
    groups = sys.modules.get("torch.distributed")
    return bool(groups and groups.is_available() and groups.is_initialized())


def _has_ends():
    """Whether the program left an object that does something at its end, as a
    file that is not closed."""
    streams = {id(each) for name in ("stdin", "stdout", "stderr")
               for stream in [getattr(sys, name)]
               for each in (stream, getattr(stream, "buffer", None))}
    return any(hasattr(type(thing), "__del__") and id(thing) not in streams
               and not _is_closed(thing) for thing in _objects())


def _is_closed(thing):
    """A file, or a socket, as the server's connection was one."""
    return isinstance(thing, (io.IOBase, socket.socket)) and \
        getattr(thing, "_closed", getattr(thing, "closed", False)) is True


def _flush():
    try:
        for stream in sys.stdout, sys.stderr:
            if stream and not stream.closed:
                stream.flush()
        return True
    except (OSError, ValueError):
        return False


def _clear_modules():
    """As finalize_modules() of Python's pylifecycle.c: modules go, and what is
    left of one that something holds is cleared."""
    left = []
    for name, module in list(sys.modules.items()):
        if _server.get(name) is not module:
            del sys.modules[name]
            try:
                left.append(weakref.ref(module))
            except TypeError:
                pass  # not a module
    if _collection in gc.callbacks:
        gc.callbacks.remove(_collection)  # the server's need no look
    sys.last_type = sys.last_value = sys.last_traceback = None
    module = None
    gc.collect()
    for each in reversed(left):
        if each():
            _clear(vars(each()))


def _clear(names):
    """_PyModule_ClearDict(): first those with one underscore."""
    for private in True, False:
        for name in list(names):
            if name != "__builtins__" and \
                    (name[:1] == "_" and name[1:2] != "_") >= private:
                names[name] = None
