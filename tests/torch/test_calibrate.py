# SPDX-License-Identifier: Apache-2.0
"""`memsim calibrate` end to end on the simulated GPU: the times of its kernels
are the simulator's, so `memsim fit` must find the GPU's own prices again."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import equal, main, test

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MEMSIM = pathlib.Path(os.environ.get("MEMSIM_BUILD", ROOT / "build")) / \
    "bin/memsim"
TABLES = [f"{table}.csv" for table in (
    "attention", "attention_backward", "convolution", "convolution_backward",
    "embedding_backward", "gemm", "gemm_backward", "index", "optimizer",
    "plain", "rows", "rows_backward", "sort", "strided", "top_k")]


def run_calibrate(directory, shapes, *options):
    return subprocess.run(
        [MEMSIM, "run", "-q", "--no-modules", "--host-speed", "0", "--",
         MEMSIM, "calibrate", "--simulated", "--python", sys.executable, "--shapes",
         str(shapes), "-o", directory, *options],
        capture_output=True, text=True)


def calibrate(directory, shapes, *options):
    done = run_calibrate(directory, shapes, *options)
    assert done.returncode == 0, done.stderr
    return done.stderr


def tables(directory):
    return {name: (pathlib.Path(directory) / name).read_text()
            for name in TABLES}


def shapes(text):
    """The shapes in a table: some have a row for each of several kernels."""
    lines = [line.split(",") for line in text.splitlines()
             if not line.startswith("#")]
    columns = lines[0]
    last = columns.index("kernel" if "kernel" in columns else "time_us")
    return {tuple(line[:last]) for line in lines[1:]}


@test
def the_fit_finds_the_prices_again():
    with tempfile.TemporaryDirectory() as scratch:
        calibrate(scratch, 3500)
        fit = pathlib.Path(scratch) / "fit.json"
        done = subprocess.run(
            [MEMSIM, "fit", "--simulated", "-o", fit,
             *(f"{scratch}/{t}" for t in TABLES)],
            capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = json.loads(fit.read_text())
        for source in found["sources"]:
            assert "simulated, not measured" in source["text"], source
        equal(found["gpu"], "h100-sxm-80gb")
        # What the H100's own fit has as a roofline of three numbers a fit gets
        # back. Kernels with numbers of their own (cost_rates.c), or
        # tiles (cuDNN's attention), are not such; trees learn of them what these
        # tables show. Percent, at most.
        most = {"sort blocks": 0.5, "sort select": 0.5, "optimizer": 3,
                "elementwise": 8, "softmax_backward": 8,
                "softmax_forward": 11, "attention_backward": 14,
                "norm_backward": 15, "attention_forward": 18,
                "sort passes": 18, "gemm": 20, "norm_forward": 20,
                "index": 32, "convolution_forward": 40, "reduce": 42,
                "strided": 45, "convolution_wgrad": 55,
                "convolution_dgrad": 70}
        seen = set()
        for model in found["models"]:
            family = model["family"]
            if family == "sort":
                family += " " + " ".join(model["variants"])
            used = model["errors"][model["model"] + "_percent"]
            assert used < most[family], (family, model["types"],
                                         model["errors"])
            # but for gelu's and normal numbers' floors, which are their own
            if family == "elementwise":
                assert model["errors"]["median_percent"] < 0.1, model["errors"]
            seen.add(family)
        equal(seen, set(most))


@test
def an_interrupted_run_goes_on():
    with tempfile.TemporaryDirectory() as scratch:
        calibrate(scratch, 60)
        first = tables(scratch)
        cut = pathlib.Path(scratch) / "gemm.csv"
        cut.write_text(first["gemm.csv"] + "linear,bf16,1,12")
        calibrate(scratch, 90)
        second = tables(scratch)
        for name in TABLES:
            assert second[name].startswith(first[name]), name
        equal(sum(len(shapes(t)) for t in second.values()), 90)
        # All at once gives the same.
        with tempfile.TemporaryDirectory() as other:
            calibrate(other, 90)
            equal(tables(other), second)


@test
def tables_of_another_way_to_measure_are_not_continued():
    with tempfile.TemporaryDirectory() as scratch:
        calibrate(scratch, 1)
        table = pathlib.Path(scratch) / "gemm.csv"
        table.write_text(table.read_text().replace(
            "# clock: sustained", "# clock: launch launch_us=1"))
        done = run_calibrate(scratch, 2)
        assert done.returncode, done.stderr
        assert "was measured in another way; use another -o" in done.stderr, \
            done.stderr


# Products, a norm and arithmetic, of which all but the loss has a table.
JOB = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(),
                            torch.nn.Linear(4096, 1024),
                            torch.nn.LayerNorm(1024)).cuda().bfloat16()
for _ in range(3):
    x = torch.ones(4096, 1024, device="cuda", dtype=torch.bfloat16)
    model(x).sum().backward()
"""


@test
def a_job_s_own_shapes_come_first():
    with tempfile.TemporaryDirectory() as scratch:
        run, out = f"{scratch}/run", f"{scratch}/tables"
        subprocess.run([MEMSIM, "run", "-q", "--gpu", "h100", "-o", run, "--",
                        sys.executable, "-c", JOB], check=True,
                       capture_output=True)
        said = calibrate(out, 0, "--for", run)
        rows = [line.split() for line in said.splitlines() if "measured%" not
                in line and line[:2] == "  "]
        measured = {row[2]: float(row[1]) for row in rows}
        assert measured["gemm"] > 99, said
        assert measured["all"] > 80, said
        found = shapes((pathlib.Path(out) / "gemm.csv").read_text())
        equal({shape[3:6] for shape in found},
              {("4096", "4096", "1024"), ("4096", "1024", "4096")})
        # All their time is measured before anything else is.
        fit = pathlib.Path(scratch) / "fit.json"
        tables_ = [f"{out}/{t}" for t in ("gemm.csv", "gemm_backward.csv")]
        done = subprocess.run([MEMSIM, "fit", "--simulated", "-o", fit, *tables_],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@test
def calls_of_the_driver_take_what_the_simulator_says():
    """doc/time.md, "Constants"; the host itself takes no time here."""
    with tempfile.TemporaryDirectory() as scratch:
        calibrate(scratch, 0, "--host")
        found = json.loads((pathlib.Path(scratch) / "host.json").read_text())
    assert "# memsim: simulated, not measured" in found["about"], found
    us = {"kernel launch": 4, "asynchronous copy": 5, "asynchronous set": 4,
          "event record": 1, "stream wait": 1,
          "synchronisation that waits for nothing": 3, "cudaMalloc": 200,
          "cudaFree": 300}
    equal(list(found["us"]), list(us))
    for name, value in us.items():
        assert abs(found["us"][name] - value) < 0.02 * value, (name, found)


@test
def models_are_measured_too():
    with tempfile.TemporaryDirectory() as scratch:
        calibrate(scratch, 1, "--truth")
        lines = (pathlib.Path(scratch) / "truth.jsonl").read_text()
        truth = [json.loads(line) for line in lines.splitlines()]
        assert truth[0]["context"] > 100 << 20, truth[0]
        for row in truth[1:]:
            assert 0.1 < row["step_ms"] < 1000, row
            assert 0 < row["peak_allocated"] <= row["peak_reserved"] < row["used"]


if __name__ == "__main__":
    main()
