# SPDX-License-Identifier: Apache-2.0
"""A trial on another machine: what --submit starts there.

It reads running/KEY/job.json of the search's directory, which is shared, and
writes trials/KEY.json. Another one may do the same: both write the same file,
whole."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from .store import (ALIVE, LOST, is_cut, load_record, save_record,
                    write_whole)
from .trials import (GRACE_S, Interrupted, Trial, catch_signals, finish,
                     ignore_signals, signal_group)

BEAT_S = 5


def beat(path, ended):
    """Shows in PATH that this one lives, until ENDED."""
    while True:
        try:
            with open(path, "a", encoding="utf-8"):
                os.utime(path)
        except OSError:
            pass  # the search has ended, and its directory is gone
        if ended.wait(BEAT_S):
            return


def wait(process, limit_s):
    """Waits for the end of PROCESS, which comes after LIMIT_S (None: ever) at
    the latest. Returns (its status, LIMIT_S or None: it ended itself)."""
    try:
        return process.wait(limit_s), None
    except subprocess.TimeoutExpired:
        signal_group(process, signal.SIGTERM)
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        signal_group(process, signal.SIGKILL)
    return process.wait(), limit_s


def run(job, scratch):
    """Runs JOB in SCRATCH. Returns what wait() does."""
    report = os.path.join(scratch, "report.json")
    with open(os.path.join(scratch, "printed"), "wb") as printed:
        process = subprocess.Popen(
            [word.replace(job["report"], report) for word in job["words"]],
            stdin=subprocess.DEVNULL, stdout=printed, cwd=job["cwd"],
            stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, **job["environment"]})
    try:
        catch_signals()
        return wait(process, job.get("limit_s"))
    except Interrupted:
        ignore_signals()
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise


def do(directory, job):
    """Makes the trial JOB of the search in DIRECTORY."""
    mine = os.path.join(directory, "running", job["key"])
    trial = Trial(job["point"], job["key"])
    ended = threading.Event()
    beating = threading.Thread(target=beat, daemon=True,
                               args=(os.path.join(mine, ALIVE), ended))
    beating.start()
    scratch = tempfile.mkdtemp(prefix="memsim-search-")
    late_s = None
    try:
        status, late_s = run(job, scratch)
    except OSError as error:
        with open(os.path.join(scratch, "printed"), "w",
                  encoding="utf-8") as file:
            file.write(f"{error}\n")
        status = 125
    except Interrupted as signalled:
        shutil.rmtree(scratch, ignore_errors=True)
        return 128 + signalled.args[0]
    if finish(trial, scratch, status, late_s):
        save_record(directory, trial.key, trial.record())
    elif os.path.isdir(mine):
        write_whole(os.path.join(mine, LOST), json.dumps(trial.record()))
    ended.set()
    return 0


def main(path):
    """PATH is that of a job.json."""
    try:
        with open(path, encoding="utf-8") as file:
            job = json.load(file)
    except OSError as error:
        print(f"memsim: search: {path}: {error.strerror}: the search does not "
              "wait for this trial any more", file=sys.stderr)
        return 1
    directory = os.path.dirname(os.path.dirname(os.path.dirname(path)))
    record = load_record(directory, job["key"])
    if record and not is_cut(record, job.get("limit_s")):
        return 0
    return do(directory, job)
