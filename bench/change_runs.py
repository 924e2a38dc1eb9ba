# SPDX-License-Identifier: Apache-2.0
"""What bench/change_* have in common: recordings of a job in a folder, changed
recordings beside runs of the changed job, and a table of both as CSV. All steps
are those of a host that takes no time (--host-speed 0)."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = "kernel", "gpu_memcpy", "gpu_memset"


class Runs:
    """Recordings of the job in FOLDER/job.py, each made once."""

    def __init__(self, args, folder):
        self.memsim = args.build / "bin" / "memsim"
        self.python, self.folder = args.python, folder
        self.job = folder / "job.py"

    def call(self, *words):
        subprocess.run([self.memsim, *map(str, words)], check=True,
                       stdout=subprocess.DEVNULL)

    def record(self, name, *job, options=(), launcher=()):
        """The folder of a run of the job with the words JOB."""
        path = self.folder / name
        if not path.exists():
            self.call("run", "-q", *options, "-o", path, "--", self.python,
                      *launcher, self.job, *job)
        return path

    def profile(self, name, recording):
        """The folder of what is imported of RECORDING's export."""
        path, export = self.folder / name, self.folder / "export.json"
        if not path.exists():
            self.call("report", recording, "-q", "--host-speed", 0,
                      "--kineto", export)
            self.call("import", "-q", export, "-o", path)
        return path

    def step_ns(self, recording, *change):
        out = self.folder / "out.json"
        self.call("replay", "-q", recording, "--host-speed", 0, "--json", out,
                  *change)
        return json.loads(out.read_text())["time"]["step_ns"]

    def step(self, recording, *change, ranks=None):
        """Its time in ns, and its timeline; with RANKS a list, of each rank."""
        export = self.folder / "step.json"
        step_ns = self.step_ns(recording, "--kineto", export, *change)
        if ranks is None:
            return step_ns, json.loads(export.read_text())
        files = [self.folder / f"step-rank{n}.json" for n in range(ranks)]
        return step_ns, [json.loads(f.read_text()) for f in files]


def operations(export):
    """The work of the last step, in order: name, duration, start in the step."""
    events = export["traceEvents"]
    last = [e for e in events if e.get("cat") == "user_annotation"][-1]
    end = last["ts"] + last["dur"]
    work = sorted((e for e in events if e.get("cat") in WORK
                   and last["ts"] <= e["ts"] < end), key=lambda e: e["ts"])
    return [(e["name"], e["dur"], e["ts"] - last["ts"]) for e in work]


def equal(got, expected):
    """How many operations there are, and how many are the same at the same
    place in the same time."""
    return len(expected), sum(a[:2] == b[:2] for a, b in zip(got, expected))


def percent(changed_ns, run_ns):
    return f"{100 * (changed_ns / run_ns - 1):.2f}"


def table(description, job, header, cases, line):
    """Prints HEADER and a line for each of CASES: what LINE says of Runs and a
    case. JOB is the script."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"))
    parser.add_argument("--only", default="", help="cases with this in them")
    parser.add_argument("--keep", type=pathlib.Path, help="recordings, for later")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = args.keep or pathlib.Path(folder)
        folder.mkdir(exist_ok=True)
        runs = Runs(args, folder)
        runs.job.write_text(job)
        print(header)
        for case in cases:
            if args.only in " ".join(map(str, case)):
                print(*line(runs, case), sep=",")
                sys.stdout.flush()
