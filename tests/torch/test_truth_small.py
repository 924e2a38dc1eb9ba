# SPDX-License-Identifier: Apache-2.0
# Libraries: old
"""A few rows of the published H100 table, run again: allocated within 0.05 % of
what a real H100 took, and both peaks those on record to the byte. Where there
is a PyTorch 2.5.1, the version of the time, both are the published ones to the
byte. bench/truth/run makes the whole table; doc/evidence/truth.md shows it."""
import csv
import json
import os
import subprocess
import sys

import torch

from harness import Skip, equal, main, test

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "data/benchmarks/truth")
JOBS = os.path.join(ROOT, "bench/truth")
TOLERANCE = 0.0005

# Runs argv[2:] with argv[1] at the end of the module path: that is where the
# other PyTorch borrows libraries from, all but torchvision, which is built for
# one PyTorch only.
BORROW = """
import os, runpy, sys
sys.modules["torchvision"] = None
sys.path.append(sys.argv[1])
del sys.argv[:2]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def rows(name):
    with open(os.path.join(DATA, name), newline="") as lines:
        return list(csv.DictReader(x for x in lines if x[0] != "#"))


def published(job):
    found = [r for r in rows("h100_step.csv") if r["id"] == job]
    return found[0]["job"].split(), {r["metric"]: int(r["published"])
                                     for r in found}


def recorded(job, version):
    return {r["metric"]: int(r["ours_bytes"])
            for r in rows("results/h100_step.csv")
            if r["id"] == job and r["torch"] == version}


def peaks(command, words):
    script, *options = words
    done = subprocess.run(
        [*command, os.path.join(JOBS, script), *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise AssertionError(done.stderr[-1000:])
    found = json.loads(done.stdout.splitlines()[-1])
    return {"peak_allocated": found["peak_allocated_bytes"],
            "peak_reserved": found["peak_reserved_bytes"]}


def check(job):
    words, real = published(job)
    ours = peaks([sys.executable], words)
    off = ours["peak_allocated"] / real["peak_allocated"] - 1
    if abs(off) > TOLERANCE:
        raise AssertionError(f"{ours} against the H100's {real}")
    if torch.__version__ != "2.11.0+cu130":
        raise Skip(f"nothing on record of PyTorch {torch.__version__}")
    equal(ours, recorded(job, torch.__version__))


def check_old(job):
    python = os.environ.get("MEMSIM_VENV", "") + "-2.5.1/bin/python"
    if not os.path.exists(python):
        raise Skip("no PyTorch 2.5.1")
    here = os.path.dirname(os.path.dirname(torch.__file__))
    words, real = published(job)
    equal(peaks([python, "-c", BORROW, here], words), real)


@test
def gpt2_large_16x512():
    check("gpt2-large-b16-s512-MP")


@test
def llama_1b_4x1024():
    check("llama-3.2-1b-b4-s1024-FP")


@test
def clip_64_float16_checkpointed():
    check("clip-large-336-b64-s20-HP-ac")


@test
def t5_large_2x1024_checkpointed():
    check("t5-large-b2-s1024-FP-ac")


@test
def gpt2_large_16x512_on_the_version_of_the_time():
    check_old("gpt2-large-b16-s512-MP")


@test
def llama_1b_4x1024_on_the_version_of_the_time():
    check_old("llama-3.2-1b-b4-s1024-FP")


if __name__ == "__main__":
    main()
