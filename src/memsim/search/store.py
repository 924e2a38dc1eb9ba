# SPDX-License-Identifier: Apache-2.0
"""The directory of a search: a small file for each trial, named by what its
result depends on, so that nothing is run twice and nothing has to be locked
but the search itself."""
import errno
import fcntl
import json
import os
import shutil

from . import SearchError
from .measure import NO_VERDICT, TIMEOUT

FORMAT = 1
PART = ".part"  # a file that is being written
# Of a trial on another machine, in running/KEY: what it is, that it lives, and
# what it printed where memsim could not run it.
JOB, ALIVE, LOST = "job.json", "alive", "failed.json"


def fail_write(path, error):
    """A file that could not be written ends the search."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        raise SearchError(
            f"{path}: {error.strerror}; free some space and give the same "
            "command again: it goes on from here") from None
    raise SearchError(f"{path}: {error.strerror}") from None


def write_whole(path, text):
    """Writes TEXT to PATH at once, or not at all."""
    scratch = f"{path}.{os.getpid()}{PART}"
    try:
        try:
            with open(scratch, "w", encoding="utf-8",
                      errors="surrogateescape") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(scratch, path)
        except OSError:
            if os.path.exists(scratch):
                os.unlink(scratch)
            raise
    except OSError as error:
        fail_write(path, error)


def save_record(directory, key, record):
    """Keeps RECORD in the search of DIRECTORY, as KEY's."""
    write_whole(os.path.join(directory, "trials", f"{key}.json"),
                json.dumps({"format": FORMAT, **record}, indent=1) + "\n")


def load_record(directory, key):
    """What was kept as KEY; None: nothing, or no whole file."""
    try:
        with open(os.path.join(directory, "trials", f"{key}.json"),
                  encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError):
        return None
    if not isinstance(record, dict) or record.get("format") != FORMAT \
            or not isinstance(record.get("measure"), dict):
        return None
    return record


def is_cut(record, limit_s):
    """Whether RECORD is of a trial that was ended before LIMIT_S (None: ever)
    was over."""
    told = record["measure"]
    return told["outcome"] == TIMEOUT and (limit_s is None or
                                           told["limit_s"] < limit_s)


class Store:
    """DIRECTORY, for one search at a time. RETRIES: what failed before it is
    not known."""

    def __init__(self, directory, retries=False):
        self.directory = directory
        self.retries, self.saved = retries, set()
        self.trials = os.path.join(directory, "trials")
        self.running = os.path.join(directory, "running")
        try:
            os.makedirs(self.trials, exist_ok=True)
            self._lock()
            shutil.rmtree(self.running, ignore_errors=True)
            os.makedirs(self.running)
            for name in os.listdir(self.trials):
                if name.endswith(PART):
                    os.unlink(os.path.join(self.trials, name))
        except OSError as error:
            fail_write(directory, error)

    def _lock(self):
        path = os.path.join(self.directory, "lock")
        self.lock = open(path, "a+", encoding="utf-8")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.lock.seek(0)
            owner = self.lock.read().strip() or "unknown"
            raise SearchError(
                f"{self.directory}: another search runs there (process "
                f"{owner}); wait for it, or give another directory (-o)"
            ) from None
        self.lock.truncate(0)
        self.lock.write(f"{os.getpid()}\n")
        self.lock.flush()

    def load(self, key):
        record = load_record(self.directory, key)
        if record and self.retries and key not in self.saved and \
                record["measure"]["outcome"] in NO_VERDICT:
            self.forget(key)
            return None
        return record

    def forget(self, key):
        """Trials on other machines look for it too."""
        try:
            os.unlink(os.path.join(self.trials, f"{key}.json"))
        except OSError as error:
            fail_write(self.trials, error)

    def save(self, key, record):
        self.saved.add(key)
        save_record(self.directory, key, record)

    def scratch(self, key):
        """A directory of its own for the trial KEY."""
        path = os.path.join(self.running, key)
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:
            fail_write(path, error)
        return path

    def close(self):
        shutil.rmtree(self.running, ignore_errors=True)
        self.lock.close()
