# SPDX-License-Identifier: Apache-2.0
"""A client that knows nothing but JSON makes scripts fit that run out of memory:
it makes the edits of an advice, runs the script again, and tries the next advice
where that failed."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import MEMSIM, Skip, main, test

MIB = 1 << 20
TRIES = 3  # changes that are followed one after the other
FILE_EDITS = "call", "argument", "statement"
# One for all: scripts with the same environment share an import of PyTorch.
CACHE = tempfile.TemporaryDirectory()


class Job:
    """A script in a folder of its own, its environment and its options."""

    def __init__(self, folder, script):
        self.folder, self.script = folder, script
        self.environment = {
            k: v for k, v in os.environ.items()
            if k not in ("MEMSIM_SESSION", "LD_PRELOAD", "MEMSIM_MODULES")}
        self.environment["XDG_CACHE_HOME"] = CACHE.name
        self.options = list(script.options)
        for name, text in script.files().items():
            pathlib.Path(folder, name).write_text(text)

    def run(self, *words):
        report = f"{self.folder}/report.json"
        done = subprocess.run(
            [MEMSIM, "run", "-q", "--gpu", "l4", "--json", report, "--memory",
             f"{self.script.memory_mib}MiB", *self.script.memsim, *words, "--",
             sys.executable, "job.py", *self.options], cwd=self.folder,
            env=self.environment, capture_output=True, text=True, check=False)
        assert os.path.exists(report), done.stderr
        with open(report) as file:
            told = json.load(file)
        os.remove(report)
        told["printed"] = done.stderr
        return told


def fullest(report):
    """The GPU with the least headroom."""
    return max((d for r in report["ranks"] for d in r["devices"]),
               key=lambda d: d["peak_used_bytes"])


def replace(path, edits):
    """Makes EDITS of the file PATH, the last one first."""
    lines = pathlib.Path(path).read_bytes().split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    text = b"\n".join(lines)

    def at(edit, end=""):
        return starts[edit[f"{end}line"] - 1] + edit[f"{end}column"]

    for edit in sorted(edits, key=at, reverse=True):
        begin, end = at(edit), at(edit, "end_")
        found = text[begin:end].decode()
        assert found == edit["old"], (found, edit)
        text = text[:begin] + edit["new"].encode() + text[end:]
    pathlib.Path(path).write_bytes(text)


def follow(job, edits):
    """Makes EDITS of JOB. Returns what undoes them."""
    before = job.folder, job.environment.copy(), job.options[:]
    files = {}
    for edit in edits:
        if edit["kind"] in FILE_EDITS:
            files.setdefault(edit["file"], []).append(edit)
        elif edit["kind"] == "environment":
            job.environment[edit["name"]] = edit["value"]
        else:
            place = job.options.index(edit["name"])
            job.options[place + 1] = edit["value"]
    old = {path: pathlib.Path(path).read_bytes() for path in files}
    for path, those in files.items():
        assert pathlib.Path(path).parent == pathlib.Path(job.folder), path
        replace(path, those)

    def undo():
        _, job.environment, job.options = before
        for path, text in old.items():
            pathlib.Path(path).write_bytes(text)
    return undo


def choose(report):
    """The advice that can be followed, the smallest change first."""
    advice = [a for a in fullest(report).get("advice", [])
              if a["fits"] and a["change"]["edits"]]
    return sorted(advice, key=lambda a: len(a["change"]["edits"]))


def fix(script):
    """Makes SCRIPT fit. Returns the advice followed, and the peaks before and
    after."""
    for name in script.libraries:
        if not importlib.util.find_spec(name):
            raise Skip(f"there is no {name}")
    with tempfile.TemporaryDirectory() as folder:
        job = Job(folder, script)
        report = job.run("--advice")
        assert report["verdict"] == "oom", (report["verdict"],
                                            report["printed"])
        tried = []
        for advice in choose(report)[:TRIES]:
            undo = follow(job, advice["change"]["edits"])
            after = job.run("--whole-job")  # some have no steps
            if after["verdict"] in ("fits", "grows"):  # a cache of keys does
                return advice, fullest(after)["peak_used_bytes"]
            undo()
            tried.append((advice["text"], after["verdict"],
                          after["printed"][-800:]))
        known = [(a["text"], a["fits"], a["change"])
                 for a in fullest(report).get("advice", [])]
        raise AssertionError(f"no advice made it fit\ntried {tried}\n"
                             f"known {known}")


def make_test(script):
    @test
    def fixed():
        advice, peak = fix(script)
        assert script.by in advice["text"], advice["text"]
        # A batch that fits has no prediction.
        predicted = advice.get("peak_used_bytes", peak)
        assert abs(peak / predicted - 1) < script.error, (
            peak / MIB, predicted / MIB)
    fixed.__name__ = script.name


def table(scripts):
    for script in scripts:
        if sys.argv[2:] and script.name not in sys.argv[2:]:
            continue
        try:
            advice, peak = fix(script)
        except (AssertionError, Skip) as error:
            print(f"| {script.name} | {error} |", flush=True)
            continue
        predicted = advice.get("peak_used_bytes", 0)
        print(f"| {script.name} | {advice['text']} | {predicted / MIB:.0f} | "
              f"{peak / MIB:.0f} | {script.memory_mib} |", flush=True)


def run_all(scripts):
    """The tests of SCRIPTS; with the word "table" what was done to each."""
    if sys.argv[1:2] == ["table"]:
        table(scripts)
        return
    for script in scripts:
        make_test(script)
    main()
