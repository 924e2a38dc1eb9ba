# SPDX-License-Identifier: Apache-2.0
"""The environments of published measurements (environments.csv): a virtual
environment each, which borrows PyTorch from one of tools/setup torch and has
the other packages of that time."""
import csv
import functools
import pathlib
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent


def read(path):
    with open(path, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(x for x in lines if x[0] != "#"))


@functools.cache
def listed():
    return {row["environment"]: row for row in read(HERE / "environments.csv")}


def run(*words):
    subprocess.run(words, check=True, stdout=sys.stderr)


def site_packages(venv):
    found = sysconfig.get_path("purelib", "venv", {"base": str(venv)})
    return pathlib.Path(found)


def torch_venv(work, version):
    """A venv with that PyTorch: one of tools/test-torch, or else our own."""
    for venv in (TOP / ".venv", TOP / f".venv-{version}"):
        if list(site_packages(venv).glob(f"torch-{version}.dist-info")):
            return venv
    venv = work / f"torch-{version}"
    run(TOP / "tools/setup", "torch", venv, version)
    return venv


def install(venv, *words):
    run(venv / "bin/python", "-m", "pip", "install", "-q",
        "--disable-pip-version-check", *words)


def make(venv, base, packages, alone):
    run(sys.executable, "-m", "venv", venv)
    (site_packages(venv) / "torch.pth").write_text(
        f"{site_packages(base).resolve()}\n")
    run(venv / "bin/python", TOP / "tools/nvidia-stubs")
    if packages:
        install(venv, *packages)
    if alone:
        install(venv, "--no-deps", *alone)


def interpreter(work, name):
    """The Python of environment NAME, made under WORK if it is not there yet.
    Raises KeyError if environments.csv lacks it."""
    row = listed()[name]
    venv = work / name
    stamp = venv / "done"
    if not stamp.exists() or stamp.read_text() != str(row):
        print(f"run: environment {name} into {venv}", file=sys.stderr)
        make(venv, torch_venv(work, row["torch"]), row["packages"].split(),
             row["alone"].split())
        stamp.write_text(str(row))
    return venv / "bin/python"
