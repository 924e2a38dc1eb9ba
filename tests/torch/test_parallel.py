# SPDX-License-Identifier: Apache-2.0
"""examples/parallel.py in a form of each kind; bench/distributed/run has all of
them. Starts its own runs: MEMSIM_BUILD."""
import json
import os
import re
import subprocess
import sys
import tempfile

from harness import equal, main, test

BUILD = os.environ["MEMSIM_BUILD"]
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../examples/parallel.py")


def run(ranks, form, world=4):
    """The example as a job of WORLD ranks, of which memsim has to choose RANKS.
    Its own figures are the report's; returns rank 0's peak in MiB."""
    with tempfile.TemporaryDirectory() as directory:
        out = f"{directory}/out.json"
        done = subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "-q", "--check-collectives",
             "--json", out, "-o", f"{directory}/run", "--nproc-per-node",
             str(world), "--", sys.executable, EXAMPLE, *form.split(),
             "--steps", "2"], capture_output=True, text=True, timeout=600)
        equal((form, done.returncode, done.stderr[-2000:] * bool(
            done.returncode)), (form, 0, ""))
        with open(out, encoding="utf-8") as file:
            told = json.load(file)
    peaks = {rank["rank"]: device["peak_allocated_bytes"] / 2**20
             for rank in told["ranks"] for device in rank["devices"]}
    said = {int(rank): float(peak) for rank, peak in re.findall(
        rf"rank (\d+) of {world}: peak allocated (\S+) MiB", done.stdout)}
    equal((form, sorted(said)), (form, ranks))
    for rank, peak in said.items():
        equal((form, rank, peak), (form, rank, round(peaks[rank], 1)))
    return said[0]


@test
def data_parallel():
    whole = run([0, 1, 3], "ddp --layers 8")
    sharded = run([0, 1, 3], "fsdp2 --hsdp 2 --layers 8")
    assert sharded < whole, (sharded, whole)


@test
def tensor_parallel():
    run([0, 1, 3], "tp")


@test
def a_pipeline():
    run([0, 1], "pp --schedule Interleaved1F1B --micro 2", world=2)


@test
def experts():
    run([0, 1], "moe --routing zipf", world=2)


main()
