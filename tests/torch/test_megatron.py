# SPDX-License-Identifier: Apache-2.0
"""examples/megatron_gpt.py: jobs of Megatron-core. Starts its own runs:
MEMSIM_BUILD. MEMSIM_MEGATRON_PYTHON names an interpreter that has Megatron-core
and Transformer Engine, which is built from source; else this one is tried.
# Libraries: megatron"""
import json
import os
import re
import subprocess
import sys
import tempfile

from harness import Skip, equal, main, test

BUILD = os.environ["MEMSIM_BUILD"]
PYTHON = os.environ.get("MEMSIM_MEGATRON_PYTHON", sys.executable)
EXAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                       "../../examples/megatron_gpt.py")
SMALL = "--layers 4 --width 256 --length 256 --micro-batches 2".split()


def need(package):
    """Skips the test where PYTHON has no PACKAGE."""
    find = (f"import importlib.util as u, sys; sys.exit(not all(u.find_spec(x) "
            f"for x in {[package.split('.')[0], package]!r}))")
    done = subprocess.run([PYTHON, "-c", find], capture_output=True)
    if done.returncode:
        raise Skip(f"{PYTHON} has no {package}")


def run(world, *options):
    """Runs the example; returns the report and rank 0's peak in bytes."""
    with tempfile.TemporaryDirectory() as directory:
        out = f"{directory}/out.json"
        done = subprocess.run(
            [f"{BUILD}/bin/memsim", "run", "-q", "--check-collectives",
             "--json", out, "--nproc-per-node", str(world), "--", PYTHON,
             EXAMPLE, *SMALL, *options],
            capture_output=True, text=True, timeout=1800)
        assert not done.returncode, (options, done.stderr[-3000:])
        with open(out, encoding="utf-8") as file:
            told = json.load(file)
    said = {int(r): int(b) for r, b in
            re.findall(r"rank (\d+): peak (\d+) B", done.stdout)}
    peaks = {rank["rank"]: rank["devices"][0]["peak_allocated_bytes"]
             for rank in told["ranks"] if rank["rank"] in said}
    equal(said, peaks)
    return told, said[0]


@test
def tensor_parallel():
    need("megatron.core")
    told, half = run(2, "--tp", "2")
    assert told["time"]["step_ns"] > 0
    assert half < run(2)[1]


@test
def the_distributed_optimizer_saves_memory():
    need("megatron.core")
    assert run(2)[1] < run(2, "--ddp")[1]


@test
def experts():
    need("megatron.core")
    need("transformer_engine")  # the router of 0.16.1 fails without
    run(2, "--experts", "4", "--ep", "2")


@test
def transformer_engine_in_fp8():
    need("megatron.core")
    need("transformer_engine")
    run(2, "--impl", "transformer_engine", "--fp8", "hybrid")


main()
