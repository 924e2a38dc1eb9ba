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
# Precisions that a GPU refuses although the CPU does not: the one that is used,
# or None for a model that is left out; and why.
ANOTHER_WAY = {
    ("transformers", "fnet"): ("fp32", "cuFFT has no bfloat16"),
    ("transformers", "inkling_text"): (
        "pure-bf16", "on a GPU, torch.where() does not take the least float32 "
        "with a bfloat16 tensor, which autocast makes"),
    ("torch_geometric", "MeshCNNConv"): (None, "it makes a tensor on the CPU"),
    ("torch_geometric", "MessagePassing"): (None, "a base class"),
    ("torch_geometric", "Aggregation"): (None, "a base class"),
}


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
