# SPDX-License-Identifier: Apache-2.0
"""Runs programs of growth_programs.py under memsim, each as a rank on a GPU of
its own: what memsim says after a few steps, and when memory really ends."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from harness import MEMSIM

PROGRAMS = pathlib.Path(__file__).resolve().parent / "growth_programs.py"

STEPS = 14        # that are recorded to predict
RANKS = 32        # in one run
MEMORY = "512MiB" # of each GPU: programs end soon
END = 2000        # steps after which a program is ended
HOST = {}         # of the last runs: bytes more in the heap with each step


def _named(decorator):
    """The programs of a kind; PyTorch, which they import, may be missing here."""
    return re.findall(rf"^@{decorator}\ndef (\w+)", PROGRAMS.read_text(), re.M)


LEAKS, INNOCENTS = _named("leak"), _named("innocent")
# Nothing says when memory runs out: the growth is bounded, or not constant.
NO_END = {"unfrozen_one_by_one", "context_grows", "lengths_kept",
          "parameters_added"}


def run(names, steps, *options):
    """Whole steps by name, and the ranks of the JSON."""
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "steps"
        report = pathlib.Path(directory) / "report.json"
        subprocess.run(
            [MEMSIM, "run", "-q", "--gpu", "t4", "--memory", MEMORY, "--gpus",
             str(len(names)), *options, "--json", report, "--",
             sys.executable, PROGRAMS, str(steps), out, *names],
            check=True, stdout=subprocess.DEVNULL)
        lines = [line.split() for line in out.read_text().splitlines()]
        ranks = json.loads(report.read_text())["ranks"]
    HOST.update({name: int(more) for name, _, more in lines})
    return {name: int(n) for name, n, _ in lines}, ranks


def parts(names):
    return [names[i:i + RANKS] for i in range(0, len(names), RANKS)]


def predict(names):
    """What memsim says of each program after STEPS steps: the member growth of
    its GPU, or None."""
    told = {}
    for part in parts(names):
        _, ranks = run(part, STEPS)
        for rank in ranks:
            told[part[rank["rank"]]] = rank["devices"][0].get("growth")
    return told


def ends(names):
    """The whole steps that each program makes before memory runs out."""
    whole = {}
    for part in parts(names):
        whole.update(run(part, END, "--no-modules")[0])
    return whole
