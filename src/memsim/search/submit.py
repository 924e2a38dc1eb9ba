# SPDX-License-Identifier: Apache-2.0
"""Trials on other machines, over a shared directory: by Slurm, or by any
command that starts another one there."""
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

from . import SearchError
from .store import ALIVE, JOB, LOST, is_cut, write_whole
from .trials import GRACE_S, PRINTED, check_space

PROGRAM = os.path.dirname(os.path.abspath(__file__))
POLL_S = 0.5
SQUEUE_S = 5    # between two questions to Slurm
SEEN_S = 15     # after its end a result is seen on a shared file system
LOST_S = 60     # without a sign of life
TRIES = 3


def worker_words(path):
    """What makes the trial PATH, a job.json."""
    return [sys.executable, "-B", PROGRAM, "--trial", path]


class Flight:
    """A trial that was submitted."""

    def __init__(self, trial, path):
        self.trial, self.path = trial, path
        self.directory = os.path.dirname(path)
        self.tries = 0
        self.process = None   # of a command
        self.task = None      # of Slurm: "12_3"
        self.gone_s = None    # since when Slurm does not know it

    def is_silent(self):
        """Whether it gave a sign of life, and then none for long."""
        try:
            then = os.stat(os.path.join(self.directory, ALIVE)).st_mtime
        except OSError:
            return False
        return time.time() - then > LOST_S


class Command:
    """Starts each trial by a command line with {} in it."""

    def __init__(self, text):
        if "{}" not in text:
            raise SearchError(f"--submit: '{text}': no {{}} for the command "
                              "that makes a trial, as in 'srun {}'; or slurm")
        self.text = text

    def submit(self, flights, directory):
        for flight in flights:
            words = " ".join(map(shlex.quote, worker_words(flight.path)))
            with open(os.path.join(flight.directory, "launcher"),
                      "ab") as out:
                flight.process = subprocess.Popen(
                    ["sh", "-c", self.text.replace("{}", words)],
                    stdin=subprocess.DEVNULL, stdout=out,
                    stderr=subprocess.STDOUT, start_new_session=True)

    def lost(self, flights):
        """Those of FLIGHTS that will not come to an end. A launcher that
        failed says so; one that succeeded may have queued the trial."""
        return [f for f in flights if f.process.poll() or f.is_silent()]

    def cancel(self, flights):
        for number in signal.SIGTERM, signal.SIGKILL:
            for flight in flights:
                try:
                    os.killpg(flight.process.pid, number)
                except ProcessLookupError:
                    pass
            if all(ends_soon(flight.process) for flight in flights):
                return


def ends_soon(process):
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def array_script(paths_file, output):
    """What sbatch runs: the Nth task makes the trial of the Nth line."""
    words = " ".join(map(shlex.quote, worker_words("")[:-1]))
    return ("#!/bin/sh\n"
            "#SBATCH --job-name=memsim-search\n"
            f"#SBATCH --output={output}\n"
            "#SBATCH --requeue\n"
            f"exec {words} \"$(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" "
            f"{shlex.quote(paths_file)})\"\n")


def ask(words):
    """What a command of Slurm's prints."""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False)
    except OSError as error:
        raise SearchError(f"--submit slurm: {words[0]}: {error.strerror}; is "
                          "Slurm installed on this machine?") from None
    if done.returncode:
        raise SearchError(f"--submit slurm: {' '.join(words[:3])} ...: "
                          f"{done.stderr.strip() or done.returncode}")
    return done.stdout


def tasks_of(printed):
    """The tasks that squeue --array PRINTED lists."""
    return {line.split()[0] for line in printed.splitlines() if line.strip()}


class Slurm:
    """Submits trials as job arrays, with OPTIONS for sbatch."""

    def __init__(self, options):
        self.options, self.count = options, 0
        self.asked_s, self.known = 0, set()

    def submit(self, flights, directory):
        self.count += 1
        stem = os.path.join(directory, f"array-{os.getpid()}-{self.count}")
        write_whole(f"{stem}.list", "".join(f.path + "\n" for f in flights))
        write_whole(f"{stem}.sh", array_script(f"{stem}.list",
                                               f"{stem}-%a.out"))
        number = ask(["sbatch", "--parsable", f"--array=0-{len(flights) - 1}",
                      *self.options, f"{stem}.sh"]).strip().split(";")[0]
        for i, flight in enumerate(flights):
            flight.task, flight.gone_s = f"{number}_{i}", None
        self.asked_s = 0

    def lost(self, flights):
        """Those that Slurm does not know any more, and that left no result in
        the time that a file takes to be seen."""
        now = time.monotonic()
        if now - self.asked_s >= SQUEUE_S:
            user = str(os.getuid())
            self.known = tasks_of(ask(["squeue", "--noheader", "--array",
                                       "--user", user, "--format=%i"]))
            self.asked_s = now
        found = []
        for flight in flights:
            if flight.task in self.known:
                flight.gone_s = None
            elif flight.gone_s is None:
                flight.gone_s = now
            elif now - flight.gone_s > SEEN_S:
                found.append(flight)
        return found

    def cancel(self, flights):
        try:
            ask(["scancel", *[flight.task for flight in flights]])
        except SearchError:
            pass  # they have ended


def engine(text):
    """What --submit TEXT names."""
    words = shlex.split(text)
    if words[:1] == ["slurm"]:
        return Slurm(words[1:])
    return Command(text)


class Submitted:
    """Makes trials of JOB by ENGINE, MOST of them in flight, each for LIMIT_S
    seconds at most; None: as long as it takes."""

    def __init__(self, job, store, most, text, limit_s=None):
        self.job, self.store, self.most = job, store, most
        self.limit_s = limit_s
        try:
            self.engine = engine(text)
        except ValueError as error:
            raise SearchError(f"--submit: '{text}': {error}") from None
        self.running = {}  # key: (trial, flight)
        self.queued = []

    def has_room(self):
        return len(self.running) < self.most

    def start(self, trial):
        directory = os.path.abspath(self.store.scratch(trial.key))
        report = os.path.join(directory, "report.json")
        path = os.path.join(directory, JOB)
        write_whole(path, json.dumps({
            "key": trial.key, "point": trial.point, "cwd": os.getcwd(),
            "words": self.job.run_words(trial.point, report),
            "report": report, "limit_s": self.limit_s,
            "environment": self.job.environment(trial.point)}))
        flight = Flight(trial, path)
        self.running[trial.key] = (trial, flight)
        self.queued.append(flight)

    def _submit(self, flights):
        for flight in flights:
            flight.tries += 1
        self.engine.submit(flights, os.path.abspath(self.store.running))

    def _take(self, flight):
        """Gives the flight's trial its result. Returns whether it has
        figures; None: there is no result yet."""
        record = self.store.load(flight.trial.key)
        if record and not is_cut(record, self.limit_s):
            flight.trial.take(record)
            flight.trial.known = False
            return True
        try:
            with open(os.path.join(flight.directory, LOST),
                      encoding="utf-8") as file:
                flight.trial.take(json.load(file))
        except (OSError, ValueError):
            return None
        flight.trial.known = False
        check_space(self.store.directory)
        return False

    def _give_up(self, flight):
        """Its launcher failed each time."""
        flight.trial.told = {"outcome": "failed", "exit_status": None,
                             "gpus": 0}
        path = os.path.join(flight.directory, "launcher")
        flight.trial.printed = f"lost {TRIES} times"
        if os.path.exists(path):
            with open(path, "rb") as file:
                told = file.read()[-PRINTED:].decode("utf-8", "replace")
            flight.trial.printed += f": {told.strip()}" if told.strip() else ""

    def _land(self, flight, whole):
        self.running.pop(flight.trial.key)
        shutil.rmtree(flight.directory, ignore_errors=True)
        return flight.trial, whole

    def wait(self):
        """Waits for one to end: (trial, whether it has figures)."""
        if self.queued:
            queued, self.queued = self.queued, []
            self._submit(queued)
        while True:
            flights = [flight for _, flight in self.running.values()]
            for flight in flights:
                whole = self._take(flight)
                if whole is not None:
                    return self._land(flight, whole)
            again = self.engine.lost(flights)
            for flight in again:
                if self._take(flight) is None and flight.tries >= TRIES:
                    self._give_up(flight)
                    return self._land(flight, False)
            again = [f for f in again if self._take(f) is None]
            if again:
                self._submit(again)
            time.sleep(POLL_S)

    def stop(self):
        """Takes back what was submitted."""
        flights = [flight for _, flight in self.running.values()
                   if flight.tries]
        if flights:
            self.engine.cancel(flights)
        self.running.clear()
