# SPDX-License-Identifier: Apache-2.0
# --scan-data finds the longest sample and the largest batch of a data loader, and
# the job does not notice; --worst-batch says what that needs. It starts runs of its
# own.
import json
import os
import subprocess
import sys
import tempfile

from harness import MEMSIM, equal, main, test

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                      "scan_kinds.py")
STEPS = 8


def run(kind, *options, steps=STEPS, status=0):
    """The report as JSON, and what the program printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "json")
        done = subprocess.run(
            [MEMSIM, "run", "-q", "--json", path, *options, "--",
             sys.executable, SCRIPT, kind, str(steps)],
            stdout=subprocess.PIPE, text=True)
        equal(done.returncode, status)
        with open(path) as file:
            return json.load(file), done.stdout


def scanned(result):
    loader, = result["data_loaders"]
    return loader, {item["dimension"]: item for item in loader["largest"]}


def law(result):
    return result["ranks"][0]["devices"][0]["input_law"]


@test
def the_longest_sample_is_found_and_the_job_is_as_without():
    result, told = run("plain", "--worst-batch")
    _, plain = run("plain")
    equal(told, plain)
    loader, largest = scanned(result)
    equal((loader["model"], loader["batches"], loader["samples"]),
          ("same", 20, 160))
    equal((largest["token"]["n"], largest["token"]["sample"]), (4000, 137))
    equal(result["verdict"], "fits")
    equal(law(result)["input_max"], 4000)


@test
def the_worst_batch_is_the_one_that_the_job_meets():
    """The order is the job's: the batch has that number in its first epoch. Partial
    sums of the embedding's gradient are a row for each 64 tokens or a part of them:
    by steps of 878 to 989 tokens that is no line, but is played in whole rows."""
    result, told = run("plain", "--worst-batch", steps=20)
    _, largest = scanned(result)
    shapes = [line for line in told.splitlines() if "4000" in line]
    equal(int(shapes[0].split()[0]), largest["token"]["batch"])
    device = result["ranks"][0]["devices"][0]
    short, _ = run("plain", "--worst-batch")
    peak = law(short)["peak_allocated_bytes"]
    assert law(short)["replayed"], law(short)
    assert abs(peak - device["peak_allocated_bytes"]) < 0.0005 * peak, \
        (peak, device["peak_allocated_bytes"])


@test
def a_worst_batch_that_does_not_fit_has_a_verdict():
    result, _ = run("plain", "--worst-batch", "--memory", "1350MiB", status=123)
    equal(result["verdict"], "input")


@test
def workers_streams_and_last_samples():
    for kind, samples in ("workers", 160), ("drops", 163), ("stream", 160):
        result, told = run(kind, "--scan-data")
        loader, largest = scanned(result)
        equal((loader["model"], loader["samples"], largest["token"]["n"]),
              ("same", samples, 4000))
        _, plain = run(kind)
        equal(told, plain)


@test
def tokens_that_are_cut_off_count():
    result, _ = run("shifted", "--worst-batch")
    loader, _ = scanned(result)
    equal((loader["model"], law(result)["input_max"]), ("shifted", 3999))


@test
def what_is_not_known_does_not_fit():
    for kind, options in (("cut", ()), ("fails", ()),
                          ("endless", ("--scan-seconds", "1"))):
        result, _ = run(kind, "--worst-batch", *options, status=122)
        equal(result["verdict"], "unknown")
        assert any("what the largest input needs is not known" in note
                   for note in result["notes"]), result["notes"]


main()
