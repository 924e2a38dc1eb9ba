# SPDX-License-Identifier: Apache-2.0
"""Trials: processes of `memsim run', several at a time."""
import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from . import SearchError
from .measure import OUT_OF_MEMORY, PRINTED, TIMEOUT, measure
from .store import fail_write

PR_SET_PDEATHSIG = 1
GRACE_S = 10
POLL_S = 0.1  # where trials have a time limit
SPACE_LEAST = 1 << 20  # what a report takes, in bytes


class Interrupted(Exception):
    """A signal came; its number is the argument."""


def interrupt(number, _):
    raise Interrupted(number)


def catch_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, interrupt)


def ignore_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


class Trial:
    """A point, and what came of it."""

    def __init__(self, point, key):
        self.point, self.key = point, key
        self.told = None      # see measure()
        self.printed = ""     # the end of what the command printed
        self.known = False    # from the store
        self.value = self.objection = None
        self.time = self.cost = self.memory = None
        self.seconds = None

    def record(self):
        return {"point": self.point, "measure": self.told,
                "printed": self.printed, "seconds": self.seconds}

    def take(self, record):
        self.told, self.printed = record["measure"], record.get("printed", "")
        self.seconds, self.known = record.get("seconds"), True


def cpu_parts(count):
    """COUNT parts of this process's CPUs, which are shared where there are
    fewer."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < count:
        return [{cpus[i % len(cpus)]} for i in range(count)]
    return [set(cpus[i * len(cpus) // count:(i + 1) * len(cpus) // count])
            for i in range(count)]


def make_warm():
    """A folder for Pythons that have imported PyTorch (capture/py/warm.py);
    "" where the user has named one, or none."""
    if "MEMSIM_WARM" in os.environ:
        return ""
    folder = tempfile.mkdtemp(prefix="memsim-warm-")
    with open(os.path.join(folder, "eager"), "w", encoding="ascii"):
        return folder


LIBC = ctypes.CDLL(None)


def prepare_child(parent, cpus):
    """In the child: it ends with its parent, and keeps to CPUS."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGTERM)
    os.sched_setaffinity(0, cpus)


def tail(path):
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - PRINTED))
        return file.read().decode("utf-8", "replace")


def finish(trial, directory, status, late_s=None):
    """Gives TRIAL the figures of its run in DIRECTORY, which is removed. LATE_S:
    the time after which it was ended; None: it ended itself. Returns whether
    there are any."""
    trial.printed = tail(os.path.join(directory, "printed"))
    try:
        with open(os.path.join(directory, "report.json"),
                  encoding="utf-8") as file:
            report = json.load(file)
        trial.told, trial.seconds = measure(report), report.get("seconds")
        whole = True
    except (OSError, ValueError):
        trial.told = {"outcome": "failed", "exit_status": status, "gpus": 0}
        whole = False
    if late_s and trial.told["outcome"] not in OUT_OF_MEMORY:
        trial.told.update(outcome=TIMEOUT, limit_s=late_s)
        trial.printed += f"\nended after {late_s} s (--trial-timeout)\n"
        whole = True
    if trial.told["outcome"] == "fits":
        trial.printed = ""
    shutil.rmtree(directory, ignore_errors=True)
    return whole


def check_space(directory):
    """A run that could not write its report says nothing where not even that
    can be written."""
    about = os.statvfs(directory)
    if about.f_bavail * about.f_frsize < SPACE_LEAST:
        fail_write(directory, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))


class Run:
    """A process of a trial, on part PLACE of the CPUs, which writes to
    DIRECTORY. LIMIT_S: when it is ended; None: never."""

    def __init__(self, process, place, directory, limit_s):
        self.process, self.place = process, place
        self.directory, self.limit_s = directory, limit_s
        self.end_s = time.monotonic() + limit_s if limit_s else None
        self.late = False

    def check(self):
        """Ends it where its time is over: first so that memsim reports."""
        if self.end_s is None or time.monotonic() < self.end_s:
            return
        signal_group(self.process,
                     signal.SIGKILL if self.late else signal.SIGTERM)
        self.late = True
        self.end_s += GRACE_S


def signal_group(process, number):
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass


class Local:
    """Runs trials of JOB on this machine, MOST at a time, each for LIMIT_S
    seconds at most; None: as long as it takes."""

    def __init__(self, job, store, most, limit_s=None):
        self.job, self.store, self.most = job, store, most
        self.limit_s = limit_s
        self.parts = cpu_parts(most)
        self.warm = make_warm()
        self.running = {}  # pid: (trial, Run)

    def has_room(self):
        return len(self.running) < self.most

    def environment(self, trial):
        warm = {"MEMSIM_WARM": self.warm} if self.warm else {}
        return {**os.environ, **warm, **self.job.environment(trial.point)}

    def start(self, trial):
        directory = self.store.scratch(trial.key)
        words = self.job.run_words(trial.point,
                                   os.path.join(directory, "report.json"))
        place = min(set(range(self.most)) -
                    {run.place for _, run in self.running.values()})
        parent = os.getpid()
        with open(os.path.join(directory, "printed"), "wb") as printed:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=printed,
                stderr=subprocess.STDOUT, start_new_session=True,
                env=self.environment(trial),
                preexec_fn=lambda: prepare_child(parent, self.parts[place]))
        self.running[process.pid] = (trial, Run(process, place, directory,
                                                self.limit_s))

    def _ended(self):
        """The process that has ended; None: look again."""
        options = os.WEXITED | os.WNOWAIT
        if not self.limit_s:
            return os.waitid(os.P_ALL, 0, options).si_pid
        found = os.waitid(os.P_ALL, 0, options | os.WNOHANG)
        if found:
            return found.si_pid
        for _, run in self.running.values():
            run.check()
        time.sleep(POLL_S)
        return None

    def wait(self):
        """Waits for one to end: (trial, whether it has figures)."""
        while True:
            pid = self._ended()
            if pid in self.running:
                break
            if pid:
                os.waitpid(pid, 0)
        trial, run = self.running.pop(pid)
        whole = finish(trial, run.directory, run.process.wait(),
                       run.limit_s if run.late else None)
        if not whole:
            check_space(self.store.directory)
        return trial, whole

    def stop(self):
        """Ends those that run; memsim passes the signal on."""
        for number in signal.SIGTERM, signal.SIGKILL:
            for _, run in self.running.values():
                signal_group(run.process, number)
            for _, run in self.running.values():
                try:
                    run.process.wait(GRACE_S)
                except subprocess.TimeoutExpired:
                    break
            else:
                break
        self.running.clear()
        if self.warm:
            shutil.rmtree(self.warm, ignore_errors=True)


def refuse_memsim(trial):
    """The run itself could not be made, as none before."""
    lines = trial.printed.strip().splitlines()
    told = "\n".join(lines[-5:]) or \
        f"memsim run ended with status {trial.told['exit_status']}"
    raise SearchError(f"the first trial could not be run:\n{told}")
