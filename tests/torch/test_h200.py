# SPDX-License-Identifier: Apache-2.0
"""Memory beside PyTorch's allocator: jobs that ran on an H200, run again. Within
16 MiB of what the card showed as used, less what PyTorch had reserved."""
import importlib.metadata
import json
import os
import pathlib
import sys

from harness import ROOT, Skip, main, memsim, test

SHARED = pathlib.Path(os.environ.get("MEMSIM_SHARED", ROOT.parent / "shared"))
JOBS = SHARED / "gpu/jobs.py"
TOLERANCE = 16 << 20

# Measurements during which the process of the job before still had memory are
# larger by hundreds of MiB; the smallest of a job is the one that was alone.
ALONE = 1 << 30


def measured(job):
    path = SHARED / "gpu/h200/jobs.jsonl"
    if not path.exists():
        raise Skip("no measurements of an H200")
    version = importlib.metadata.version("torch")
    if not version.startswith("2.11."):
        raise Skip(f"measured with PyTorch 2.11.0, not {version}")
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    beside = min(x["used"] - x["reserved"] for x in lines
                 if x["job"] == job and "used" in x)
    assert beside < ALONE, beside
    return beside


def check(job):
    wanted = measured(job)
    printed = memsim("run", "-q", "--gpu", "h200", "--", sys.executable, JOBS,
                     "--job", job.removeprefix("edge-"), "--steps", "2")
    found = json.loads(printed.splitlines()[-1])
    beside = found["used"] - found["reserved"]
    assert abs(beside - wanted) <= TOLERANCE, (beside, wanted)
    return beside, wanted


def check_equal(job):
    beside, wanted = check(job)
    assert beside == wanted, (beside, wanted)


@test
def two_threads_multiply_and_one_has_streams():
    check_equal("h2d-overlap")


@test
def two_handles_of_cublas_and_of_cudnn():
    check_equal("lstm-fp32")


@test
def convolutions_without_a_product():
    check("edge-unet-amp")


if __name__ == "__main__":
    main()
