# SPDX-License-Identifier: Apache-2.0
"""Hands this Python's program to one that has imported PyTorch already.

MEMSIM_WARM names a folder. There, for each interpreter and environment, a
server (warm_server.py) waits that has imported PyTorch under memsim, outside
of any run. offer() gives it this process's command, folder, environment and
descriptors; the server forks a process that runs the program, and this one
stays as its stand-in: it passes signals on and ends as that process ends. The
second program of a kind starts the server, or the first one where the folder
has a file "eager"; what no server takes runs here, as it does without
MEMSIM_WARM.
"""
import hashlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

START_S = 300  # for a server to be there, on a busy machine
SERVERS = 6  # at a time; each keeps PyTorch in memory
PASSED_ON = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM,
             signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT)

# What may differ between programs of one server: nothing reads it when PyTorch
# is imported. All of memsim's own may as well.
_FREE = {"PWD", "OLDPWD", "SHLVL", "_", "TMPDIR", "COLUMNS", "LINES",
         "CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF",
         "PYTORCH_ALLOC_CONF", "RANK", "LOCAL_RANK", "GROUP_RANK", "ROLE_RANK",
         "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_WORLD_SIZE",
         "ROLE_WORLD_SIZE", "ROLE_NAME", "MASTER_ADDR", "MASTER_PORT"}
_FREE_PREFIXES = ("MEMSIM", "TORCHELASTIC_")


def is_free(name):
    """Whether programs with other values of NAME may share a server."""
    return name in _FREE or name.startswith(_FREE_PREFIXES)


def _options():
    """The interpreter's: -u, which launchers add, or none."""
    return sys.orig_argv[1:2] if sys.orig_argv[1:2] == ["-u"] else []


def _words():
    """The command without the interpreter and its options."""
    return sys.orig_argv[1 + len(_options()):]


def _library():
    """Tells builds of memsim's library apart, which a server keeps loaded."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        found = os.stat(os.path.join(folder, "libmemsim.so"))
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _key():
    """What programs of one server have in common."""
    same = {n: v for n, v in os.environ.items() if not is_free(n)}
    text = json.dumps([sys.executable, _options(), list(sys.flags), _library(),
                       sorted(same.items())])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _text_of(path):
    try:
        with open(path, errors="replace") as file:
            return file.read(1 << 20)
    except OSError:
        return ""


def _kind(command):
    """How COMMAND names its program: "script", "code" or "module"; None: it is
    not one that a server can run."""
    if not command:
        return None
    if command[0] == "-c" and len(command) > 1:
        return "code" if "torch" in command[1] and \
            "multiprocessing" not in command[1] else None
    if command[0] == "-m":
        return "module" if command[1:2] == ["torch.distributed.run"] else None
    if command[0].startswith("-") or not os.path.isfile(command[0]):
        return None
    return "script" if "torch" in _text_of(command[0]) else None


# --- the server ---------------------------------------------------------------


def _start(path):
    """Starts the server of PATH, which belongs to no run."""
    server = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                          "warm_server.py")
    free = {n: "" for n in os.environ if n.startswith("MEMSIM_SESSION")}
    environment = {n: v for n, v in os.environ.items() if not is_free(n)}
    environment.update(free, MEMSIM_WARM=os.path.dirname(path))
    subprocess.Popen([sys.executable, *_options(), server, path], env=environment, cwd="/",
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL, start_new_session=True)


def _connect(path):
    """A connection to the server of PATH, or None."""
    to = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        to.connect(path)
        return to
    except OSError:
        to.close()
        return None


def _claim(path):
    """Whether this process is the first to make PATH."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        return True
    except OSError:
        return False


def _find(folder):
    """A connection to a server for this program; None: there is none yet, or
    this is the first program of its kind."""
    os.stat(folder)
    path = os.path.join(folder, _key())
    server = _connect(path)
    is_eager = os.path.exists(os.path.join(folder, "eager"))
    if server or (_claim(path + ".seen") and not is_eager):
        return server
    if _claim(path + ".starts"):
        if sum(n.endswith(".starts") for n in os.listdir(folder)) > SERVERS:
            os.unlink(path + ".starts")
            return None
        _start(path)
    deadline = time.monotonic() + START_S
    while not os.path.exists(path + ".failed") and \
            time.monotonic() < deadline and \
            not signal.sigpending().intersection(PASSED_ON):
        os.stat(folder)  # whoever gave it may have ended
        is_there = os.path.exists(path)
        server = _connect(path)
        if server or (is_there and os.path.exists(path) and _forget(path)):
            return server
        time.sleep(0.02)
    return None


def _forget(path):
    """The server of PATH was killed: the next program starts another."""
    for name in (path, path + ".starts"):
        try:
            os.unlink(name)
        except OSError:
            pass  # another program was first
    return True


# --- this program ---------------------------------------------------------------


def _descriptors():
    """What a program that is executed would inherit."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            pass  # that of the listing
    return sorted(found)


def _ignored():
    """The signals that this process was started to ignore."""
    return [int(s) for s in signal.Signals if signal.getsignal(s) == signal.SIG_IGN]


def _request(kind, mask):
    with open("/proc/self/cmdline", "rb") as file:
        line = file.read()
    umask = os.umask(0)
    os.umask(umask)
    return {"kind": kind, "command": [sys.executable, *_words()],
            "started": sys.orig_argv, "process": os.getpid(), "cwd": os.getcwd(),
            "line": os.fsdecode(line), "environment": dict(os.environ),
            "path": sys.path, "umask": umask, "mask": [int(s) for s in mask],
            "ignored": _ignored(),
            "cpus": sorted(os.sched_getaffinity(0)),
            "descriptors": _descriptors()}


def _send(server, request):
    text = json.dumps(request).encode()
    head = struct.pack("=Q", len(text))
    socket.send_fds(server, [head], request["descriptors"])
    server.sendall(text)


def _number(server):
    """The next number: the program's process once it has entered the run, or
    ~status once it has ended. None: the server has gone."""
    got = b""
    while len(got) < 8:
        more = server.recv(8 - len(got))
        if not more:
            return None
        got += more
    return struct.unpack("=q", got)[0]


def _end(status):
    """Ends as a process with the wait status STATUS did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL \
            else None
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xff)


def _stand_in(server, mask):
    """Stays until the program that the server runs ends, and ends so."""
    child = _number(server)
    if child is None:
        return  # it did not start: it runs here
    if child < 0:
        _end(~child)
    import ctypes
    ctypes.CDLL("libmemsim.so").memsim_process_stands_in()

    def pass_on(number, _frame):
        try:
            os.kill(child, number)
        except OSError:
            pass  # it has ended; its status is on the way

    for number in PASSED_ON:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    status = _number(server)
    _end(signal.SIGKILL if status is None else ~status)


def offer():
    """Does not return where a server ran this process's program."""
    kind = _kind(_words())
    if not kind or os.isatty(0) or \
            os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1") or \
            os.environ.get("MEMSIM_WARM_NOT") == str(os.getpid()):
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    try:
        server = _find(os.environ["MEMSIM_WARM"])
        if server:
            with server:
                _send(server, _request(kind, mask))
                _stand_in(server, mask)
    except Exception as error:  # a folder that has gone, many descriptors
        print(f"memsim: note: MEMSIM_WARM has no effect: {error}",
              file=sys.stderr)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
