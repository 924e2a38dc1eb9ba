# SPDX-License-Identifier: Apache-2.0
"""The zoo's tables: configurations and results."""
import csv
import fcntl
import os

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIGS = os.path.join(HERE, "configs.csv")
RESULTS = os.path.join(HERE, "results.csv")
CONFIG_FIELDS = ["library", "model", "size", "batch", "length", "gpu",
                 "precision", "optimizer", "options"]
FIELDS = ["id", "status", "allocated_bytes", "reserved_bytes", "seconds",
          "host_mib", "error"]


def identity(config):
    return " ".join(str(v) for v in config.values() if v)


def configs():
    with open(CONFIGS, newline="") as file:
        return [{"id": identity(r), **r} for r in csv.DictReader(file)]


def results():
    """By the configuration's id."""
    if not os.path.exists(RESULTS):
        return {}
    with open(RESULTS, newline="") as file:
        return {r["id"]: r for r in csv.DictReader(file)}


def keep(row):
    """Adds a result; another sweep may add some, too."""
    with open(CONFIGS) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        every = {**results(), row["id"]: row}
        order = [c["id"] for c in configs()]
        with open(RESULTS + "-t", "w", newline="") as file:
            out = csv.DictWriter(file, FIELDS, lineterminator="\n",
                                 extrasaction="ignore")
            out.writeheader()
            out.writerows(every[i] for i in order if i in every)
            out.writerows(every[i] for i in sorted(set(every) - set(order)))
        os.replace(RESULTS + "-t", RESULTS)
