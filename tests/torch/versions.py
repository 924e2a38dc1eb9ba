#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each PyTorch version can do on the fake device: versions.py VENV...
runs the tests that belong to every version and compares the table in
doc/versions.md with what they found; --write makes it. Started by tests/run."""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(ROOT, "doc", "versions.md")
COUNT = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)

TEXT = """# PyTorch versions

One `memsim run` serves all of these versions, without a flag.
`tests/torch/versions.py --write VENV...` runs the tests and writes this page.
`make test` fails if the page says anything else than the tests find.

{}
"whole": every test of the file in `tests/torch` passed or was skipped. A test is
skipped if a library is missing, or if that PyTorch lacks what it tests. All ran
without NVIDIA's packages.
"replaced": the tests installed NVIDIA's small packages (the runtime, NVTX,
CUPTI). memsim found them, left them alone and loaded its own libraries instead.
For the other packages, the tests used libraries that fail if they are loaded.
"foreign libraries" tests this. It also tests extensions for the other CUDA major,
and some that are newer than memsim.

2.10.0 is the newest version on PyPI that is built for CUDA 12: 2.11.0 to 2.15.0
require `cuda-toolkit` 13 (`pip install --dry-run --ignore-installed --report -
torch==VERSION`, November 2026). 2.15.0 is the newest of all.
PyTorch 2.1 to 2.4 run, too, and their jobs are attributed and timed; `memsim replay`
refuses their recordings, and the tests do not run on them. 2.1 to 2.3 need cuDNN 8,
whose functions for recurrent networks fail. For 2.1 and 2.2 the report says that the
sizes that were requested and the streams of blocks are not recorded. With 2.1.2 and
2.4.1 a small network, one with convolutions and FSDP1 on several ranks were run.

A newer version loads as far as it can. The report names each function that the
version needs and memsim lacks. The program misses it only when it calls it.
"""

FILES = [("basics", "test_basic.py"), ("values", "test_values.py"),
         ("errors", "test_errors.py"), ("graphs", "test_graphs.py"),
         ("foreign libraries", "test_foreign.py")]

# What a test's name is in the output only where it was skipped or failed.
REAL_PACKAGES = "real_packages_are_left_alone"

FACTS = """
import json, platform, torch
model = torch.nn.Linear(256, 256, device="cuda")
model(torch.zeros(256, 256, device="cuda")).sum().backward()
print(json.dumps([torch.__version__.split("+")[0], torch.version.cuda,
                  ".".join(platform.python_version_tuple()[:2])]))
"""


def facts(memsim, python):
    """The version, CUDA's and Python's; whether modules are told apart."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "result.json")
        out = subprocess.run([memsim, "run", "-q", "--json", path, "--",
                              python, "-c", FACTS], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        with open(path) as file:
            device = json.load(file)["ranks"][0]["devices"][0]
    modules = {module["name"] for module in device["modules_at_peak"]}
    return json.loads(out) + ["yes" if "Linear" in modules else "no"]


def run(memsim, python, name):
    """(passed, failed, skipped) of the test file NAME, and what it printed."""
    path = os.path.join(HERE, name)
    command = [python, path]
    with open(path) as file:
        if "MEMSIM_BUILD" not in file.read():
            command = [memsim, "run", "-q", "--"] + command
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    counts = COUNT.findall(done.stdout)
    if not counts:
        return (0, 1, 0), done.stdout
    return tuple(map(int, counts[-1])), done.stdout


def row(memsim, venv):
    """A row of the table, what the tests counted, and what failed, in text."""
    python = os.path.join(venv, "bin", "python")
    version, cuda, python_version, modules = facts(memsim, python)
    cells, totals, log = [], (0, 0, 0), ""
    packages = "not tried"
    for _, name in FILES:
        counts, output = run(memsim, python, name)
        if name == "test_foreign.py" and REAL_PACKAGES not in output:
            packages = "replaced"
        totals = tuple(map(sum, zip(totals, counts)))
        cells.append("whole" if not counts[1] else f"{counts[1]} failed")
        log += f"{version} {name}:\n{output}" if counts[1] else ""
    return ([version, cuda, python_version, packages] + cells + [modules],
            totals, log)


def table(rows):
    head = ["PyTorch", "CUDA", "Python", "NVIDIA's packages"] + \
        [title for title, _ in FILES] + ["peak by module"]
    rows = sorted(rows, key=lambda cells: [int(n) for n in
                                           cells[0].split(".")])
    lines = [head, ["---"] * len(head)] + rows
    return TEXT.format("".join(f"| {' | '.join(line)} |\n" for line in lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=os.environ.get(
        "MEMSIM_BUILD", os.path.join(ROOT, "build")))
    parser.add_argument("--write", action="store_true")
    parser.add_argument("venvs", nargs="+")
    args = parser.parse_args()
    os.environ["MEMSIM_BUILD"] = os.path.abspath(args.build)
    memsim = os.path.join(os.environ["MEMSIM_BUILD"], "bin", "memsim")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda venv: row(memsim, venv), args.venvs))
    text = table([cells for cells, _, _ in found])
    if args.write:
        with open(TABLE, "w") as file:
            file.write(text)
    with open(TABLE) as file:
        same = file.read() == text
    print("".join(log for _, _, log in found), end="")
    if not same:
        print(f"{TABLE} is not what was found (--write):\n{text}")
    passed, failed, skipped = map(sum, zip(*(n for _, n, _ in found)))
    passed, failed = passed + same, failed + (not same)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
