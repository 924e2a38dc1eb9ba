# SPDX-License-Identifier: Apache-2.0
"""Predictions of jobs and what became of them: an SQLite file."""
import contextlib
import json
import os
import sqlite3
import time

from . import AdmitError

VERSION = 1  # PRAGMA user_version
SCHEMA = f"""
CREATE TABLE predictions (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, job TEXT, name TEXT,
    script TEXT, directory TEXT, nodes INTEGER, tasks INTEGER, gpus INTEGER,
    gpu TEXT, verdict TEXT NOT NULL, why TEXT, peak_bytes INTEGER,
    capacity_bytes INTEGER, step_ns INTEGER, seconds REAL,
    refused INTEGER NOT NULL, version TEXT, outputs TEXT);
CREATE TABLE outcomes (
    prediction INTEGER NOT NULL REFERENCES predictions(id), job TEXT NOT NULL,
    state TEXT NOT NULL, exit TEXT, outcome TEXT NOT NULL, gpu_bytes INTEGER,
    elapsed_s INTEGER, PRIMARY KEY (prediction, job));
CREATE INDEX predictions_job ON predictions(job);
PRAGMA user_version = {VERSION};
"""
WAIT_S = 30  # for another one that writes


def usual_path():
    """Where the user's own database is."""
    state = os.environ.get("XDG_STATE_HOME") or \
        os.path.expanduser("~/.local/state")
    return os.path.join(state, "memsim", "outcomes.sqlite")


class Database:
    """PATH, which is made unless ONLY_READ."""

    def __init__(self, path, only_read=False):
        self.path = path
        with self._errors():
            if only_read and not os.path.exists(path):
                raise AdmitError(f"{path}: no such file; `memsim admit' makes "
                                 "it with the first job that it predicts")
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            self.connection = sqlite3.connect(path, timeout=WAIT_S)
            self.connection.row_factory = sqlite3.Row
            self._open()

    def _open(self):
        found = self._version()
        if found == 0:
            with contextlib.suppress(sqlite3.OperationalError):
                self.connection.executescript("BEGIN IMMEDIATE;" + SCHEMA +
                                              "COMMIT;")
            found = self._version()  # another one may have made the tables
        if found != VERSION:
            raise AdmitError(f"{self.path}: not a database of this memsim's; "
                             "give another file (--database)")

    def _version(self):
        return self.connection.execute("PRAGMA user_version").fetchone()[0]

    @contextlib.contextmanager
    def _errors(self):
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise AdmitError(f"{self.path}: {error}; move it away, or give "
                             "another file (--database)") from None
        except OSError as error:
            raise AdmitError(f"{self.path}: {error.strerror}") from None

    def _insert(self, table, row, verb="INSERT"):
        names = ", ".join(row)
        places = ", ".join(f":{name}" for name in row)
        with self._errors(), self.connection:
            return self.connection.execute(
                f"{verb} INTO {table} ({names}) VALUES ({places})",
                row).lastrowid

    def add_prediction(self, request, prediction, refused, version):
        """Returns its number."""
        told = prediction.figures
        return self._insert("predictions", {
            "time": time.time(), "name": request.name, "script": request.path,
            "directory": request.directory, "nodes": request.nodes,
            "tasks": request.tasks, "gpus": request.gpus,
            "gpu": told.get("gpu"), "verdict": prediction.verdict,
            "why": prediction.why, "peak_bytes": told.get("peak_used_bytes"),
            "capacity_bytes": told.get("capacity_bytes"),
            "step_ns": told.get("step_ns"), "seconds": prediction.seconds,
            "refused": int(refused), "version": version,
            "outputs": json.dumps(request.output_patterns())})

    def set_job(self, number, job):
        """The prediction NUMBER is that of Slurm's JOB."""
        with self._errors(), self.connection:
            self.connection.execute(
                "UPDATE predictions SET job = ? WHERE id = ?", (job, number))

    def add_outcome(self, row):
        self._insert("outcomes", row, "INSERT OR REPLACE")

    def submitted(self):
        """The predictions whose jobs were submitted."""
        return self._rows("SELECT * FROM predictions WHERE job IS NOT NULL")

    def predictions(self):
        return self._rows("SELECT * FROM predictions ORDER BY id")

    def outcomes(self):
        """Outcomes with their predictions' figures."""
        return self._rows(
            "SELECT o.*, p.verdict, p.peak_bytes, p.capacity_bytes, p.name, "
            "p.gpu, p.step_ns FROM outcomes o JOIN predictions p "
            "ON p.id = o.prediction ORDER BY o.prediction, o.job")

    def _rows(self, query):
        with self._errors():
            return [dict(row) for row in self.connection.execute(query)]
