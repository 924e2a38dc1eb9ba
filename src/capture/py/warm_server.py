# SPDX-License-Identifier: Apache-2.0
"""A Python that has imported PyTorch under memsim, outside of any run, and forks
a process for each program that warm.py hands over: warm_server.py SOCKET.

The first program that ends says what else it imported of installed packages. A
fork of the server imports that too (warm_grow.py) and takes its place, if the
import did nothing that a fork cannot share.

It ends when its socket is gone, or after ten minutes without a program.
"""
import array
import gc
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time

import warm_end
import warm_grow

IDLE_S = 600
LOOK_S = 1
HEAD = struct.Struct("=Q")
NUMBER = struct.Struct("=q")
FDS_MOST = 253  # of one message: SCM_MAX_FD


class Request:
    """A program: warm.py's _request, and its descriptors here."""

    def __init__(self, connection):
        data, ancillary, _, _ = connection.recvmsg(
            HEAD.size, socket.CMSG_SPACE(4 * FDS_MOST), socket.MSG_CMSG_CLOEXEC)
        self.here = array.array("i")
        for _, _, passed in ancillary:
            self.here.frombytes(passed)
        left, parts = HEAD.unpack(data)[0], []
        while left:
            parts.append(connection.recv(min(left, 1 << 20)))
            if not parts[-1]:
                raise OSError("cut off")
            left -= len(parts[-1])
        vars(self).update(json.loads(b"".join(parts)))

    def close(self):
        for number in self.here:
            os.close(number)


def listen(path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path + ".new")
    listener.listen(64)
    listener.setblocking(False)  # two servers may wait for a program
    os.rename(path + ".new", path)
    return listener


def _fork_without_signals():
    """Forks. For the child they wait until it is the program (_take_signals)."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    process = -1
    try:
        process = os.fork()
    finally:
        if process:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return process


class Server:
    """Serves what LISTENER, at PATH, accepts. IMPORTED: what it has of
    warm_grow.py; None: it is to ask a program."""

    def __init__(self, path, listener, imported=None):
        self.path, self.listener = path, listener
        self.selector = selectors.DefaultSelector()
        self.children = {}  # connections, by process
        self.imported = imported
        self.asked = {}     # files of warm_grow.ask(), by process
        self.grown = None   # a pipe from the fork that is to take this place
        self.successor = 0
        self.is_replaced = False
        self.used = time.monotonic()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.wake, wakes = socket.socketpair()
        for end in self.wake, wakes:
            end.setblocking(False)
        self.selector.register(self.wake, selectors.EVENT_READ)
        self.wakes = wakes
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)

    def is_over(self):
        return not self.children and not self.successor and (
            self.is_replaced or not os.path.exists(self.path)
            or time.monotonic() - self.used > IDLE_S)

    def serve(self):
        """Serves until the end, here; returns a Request in each child, and a
        Server in the fork that is to take this one's place."""
        while not self.is_over():
            for key, _ in self.selector.select(LOOK_S):
                found = self._ready(key.fileobj)
                if found:
                    return found
            found = self._reap()
            if found:
                return found
        self.close()
        if not self.is_replaced:
            self.forget()
        return None

    # --- more imports ---------------------------------------------------------

    def _grow(self, names):
        """A program imported NAMES: a fork imports them too, and is the next
        server. Returns that in the fork, if it can be one."""
        self.imported = []
        ends, says = os.pipe()
        self.successor = os.fork()
        if self.successor:
            os.close(says)
            self.grown = ends
            self.selector.register(ends, selectors.EVENT_READ)
            return None
        os.close(ends)
        self.close(keeps_listener=True)
        imported = warm_grow.grow(names)
        if imported is None:
            os._exit(1)
        _freeze()
        server = Server(self.path, self.listener, imported)
        os.write(says, NUMBER.pack(0))
        os.close(says)
        return server

    def _take_grown(self):
        """The fork serves from now on, or has failed."""
        self.is_replaced = len(os.read(self.grown, NUMBER.size)) > 0
        self.selector.unregister(self.grown)
        os.close(self.grown)
        self.grown = None
        if self.is_replaced:
            self.selector.unregister(self.listener)

    # --- programs -------------------------------------------------------------

    def forget(self):
        """Leaves the folder as if this server had not been: another one may
        start. Who made the folder may have been killed."""
        for end in "", ".starts", ".seen", ".count":
            if os.path.exists(self.path + end):
                os.unlink(self.path + end)
        folder = os.path.dirname(self.path)
        eager = os.path.join(folder, "eager")
        if os.path.isdir(folder) and os.listdir(folder) == ["eager"]:
            os.unlink(eager)
            os.rmdir(folder)

    def _ready(self, ready):
        if ready is self.listener:
            return self._accept()
        if ready is self.wake:
            self.wake.recv(4096)
        elif ready == self.grown:
            self._take_grown()
        else:  # its stand-in has gone: so does the program
            for process, connection in list(self.children.items()):
                if connection is ready and not ready.recv(64):
                    self.selector.unregister(ready)
                    os.kill(process, signal.SIGKILL)
        return None

    def _accept(self):
        place = None
        try:
            connection, _ = self.listener.accept()
        except OSError:
            return None  # another server took it, or it has gone
        self.used = time.monotonic()
        try:
            request = Request(connection)
            if self.imported is None:
                place = warm_grow.ask()
            process = _fork_without_signals()
        except OSError:
            connection.close()
            return None
        if not process:
            request.connection, request.place = connection, place
            request.imported = self.imported
            self.close()
            return request
        if place is not None:
            self.asked[process] = place
        request.close()
        self._count()
        self.children[process] = connection
        self.selector.register(connection, selectors.EVENT_READ)
        return None

    def _count(self):
        """Counts the programs that this and earlier servers ran."""
        with open(self.path + ".count", "a+") as file:
            file.seek(0)
            count = int(file.read() or 0)
            file.truncate(0)
            print(count + 1, file=file)

    @staticmethod
    def say(connection, number):
        try:
            connection.send(NUMBER.pack(number), socket.MSG_NOSIGNAL)
        except OSError:
            pass  # it has gone: its connection says so as well

    def _reap(self):
        """Takes what has ended. Returns a Server in a fork that is to be one."""
        if self.successor and os.waitpid(self.successor, os.WNOHANG)[0]:
            self.successor = 0
        names = None
        for process in list(self.children):
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                names = self._ended(process, status) or names
        return self._grow(names) if names and self.imported is None else None

    def _ended(self, process, status):
        """Says so. Returns what the program told of its imports, or None."""
        connection = self.children.pop(process)
        self.say(connection, ~status)
        try:
            self.selector.unregister(connection)
        except KeyError:
            pass  # its stand-in had gone
        connection.close()
        self.used = time.monotonic()
        place = self.asked.pop(process, None)
        return place is not None and warm_grow.told(place)

    def close(self, keeps_listener=False):
        """Leaves nothing of the server's in this process."""
        signal.set_wakeup_fd(-1)
        self.selector.close()
        if self.grown is not None:
            os.close(self.grown)
        if not keeps_listener:
            self.listener.close()
        for each in self.wake, self.wakes, *self.children.values():
            each.close()
        for place in self.asked.values():
            os.close(place)


# --- a program -----------------------------------------------------------------


def _take_descriptors(request):
    """Gives the program's descriptors the numbers that they have there."""
    above = max(request.descriptors, default=0) + 1
    import fcntl
    moved = [fcntl.fcntl(n, fcntl.F_DUPFD_CLOEXEC, above) for n in request.here]
    request.close()
    if request.place is not None:
        old, request.place = request.place, fcntl.fcntl(
            request.place, fcntl.F_DUPFD_CLOEXEC, above)
        os.close(old)
    with request.connection as old:
        request.connection = socket.socket(
            fileno=fcntl.fcntl(old, fcntl.F_DUPFD_CLOEXEC, above))
    for number, wanted in zip(moved, request.descriptors):
        os.dup2(number, wanted)
        os.close(number)
    for stream in sys.stdout, sys.stderr:
        stream.reconfigure(line_buffering=stream is sys.stderr
                           or os.isatty(stream.fileno()))


def _take_signals(request):
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in {*request.ignored, signal.SIGPIPE, signal.SIGXFSZ}:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, request.mask)


def _take_place(request):
    os.setsid()
    os.chdir(request.cwd)
    os.umask(request.umask)
    os.sched_setaffinity(0, request.cpus)
    os.environ.clear()
    os.environ.update(request.environment)


def _enter_run(request):
    import ctypes
    line = os.fsencode(request.line)
    ctypes.CDLL("libmemsim.so").memsim_process_enter(line, len(line),
                                                     request.process)
    with request.connection as connection:
        Server.say(connection, os.getpid())


def _forget_the_server():
    """What modules noted when they were imported: where temporary files go,
    the folder, random numbers."""
    import multiprocessing.process
    import tempfile
    tempfile.tempdir = None
    multiprocessing.process.ORIGINAL_DIR = os.getcwd()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def _start_site(request):
    """As the interpreter starts: our sitecustomize, and then the user's."""
    sys.path[:] = request.path
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                         "sitecustomize.py")
    import importlib.util
    spec = importlib.util.spec_from_file_location("sitecustomize", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _is_set_by_torch():
    """Whether the caller's caller runs for PyTorch, which sets variables for
    itself and its children, as Inductor does TORCHINDUCTOR_CACHE_DIR."""
    frame = sys._getframe(2)
    while frame and frame.f_globals.get("__name__") in ("os",
                                                        "_collections_abc"):
        frame = frame.f_back
    name = frame.f_globals.get("__name__", "") if frame else ""
    return name.partition(".")[0] == "torch"


def _guard_environment(request):
    """A program that sets what PyTorch reads when it is imported starts anew,
    without a server. A launcher sets it for those that it starts."""
    put = os.putenv
    if request.kind == "module":
        return

    def putenv(name, value):
        put(name, value)
        text = os.fsdecode(name)
        if text.startswith(("TORCH", "PYTORCH", "OMP_", "MKL_", "KMP_",
                            "OPENBLAS")) and \
                not text.endswith("ALLOC_CONF") and \
                request.environment.get(text) != os.fsdecode(value) and \
                not sys.modules["torch"].cuda.is_initialized() and \
                not _is_set_by_torch():
            sys.stdout.flush()
            put("MEMSIM_WARM_NOT", str(os.getpid()))
            os.execv(sys.executable, request.started)

    os.putenv = putenv


def _main_module(path):
    """A new __main__ of the file PATH; None: of none."""
    import types
    main = types.ModuleType("__main__")
    main.__builtins__ = sys.modules["builtins"]
    main.__annotations__ = {}
    if path:
        from importlib.machinery import SourceFileLoader
        main.__file__, main.__cached__ = path, None
        main.__loader__ = SourceFileLoader("__main__", path)
    else:
        from importlib.machinery import BuiltinImporter
        main.__loader__ = BuiltinImporter
    sys.modules["__main__"] = main
    return main


def _execute(request):
    kind, command = request.kind, request.command
    sys.orig_argv[:] = request.started
    if kind == "module":
        import runpy
        sys.argv[:] = command[2:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
        return
    if kind == "code":
        sys.argv[:] = ["-c", *command[3:]]
        sys.path.insert(0, "")
        source, name, main = command[2], "<string>", _main_module(None)
    else:
        sys.argv[:] = command[1:]
        name = os.path.abspath(command[1])
        sys.path.insert(0, os.path.dirname(os.path.realpath(name)))
        with open(name, "rb") as file:
            source = file.read()
        main = _main_module(name)
    exec(compile(source, name, "exec", dont_inherit=True), main.__dict__)


def _run(request):
    """Runs the program. Returns its status; the interpreter ends with it."""
    warm_grow.repeat(request.imported)
    before, process = set(sys.modules), os.getpid()
    try:
        try:
            _execute(request)
            return 0
        finally:
            if request.place is not None and os.getpid() == process:
                warm_grow.tell(request.place, before)
    except SystemExit as end:
        return warm_end.status_of(end.code)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        error = error.with_traceback(trace)
        sys.last_type, sys.last_value, sys.last_traceback = \
            type(error), error, trace
        sys.excepthook(type(error), error, trace)
        return 1


def _import():
    """PyTorch, and what optimizers import of it when the first one is made."""
    import inductor
    import torch  # noqa: F401
    inductor.start()  # before its settings are read
    try:
        import torch._dynamo  # noqa: F401
    except ImportError:
        pass  # it needs more than this Python has


def _freeze():
    """Programs find the server's objects collected, all of them: Python's rule for
    when it collects everything goes by how many were left then."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def main(path):
    # The program that started this one has some blocked, for its own fork.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _import()
    try:
        server = Server(path, listen(path))
    except OSError:
        open(path + ".failed", "w").close()
        raise
    _freeze()
    request = server
    while isinstance(request, Server):
        server = request
        request = server.serve()
    if not request:
        return
    del server
    _take_place(request)
    _take_signals(request)
    _take_descriptors(request)
    _enter_run(request)
    _forget_the_server()
    warm_end.begin()
    _start_site(request)
    _guard_environment(request)
    status = _run(request)
    warm_end.end(status)
    sys.exit(status)


if __name__ == "__main__":
    main(sys.argv[1])
