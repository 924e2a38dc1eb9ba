# SPDX-License-Identifier: Apache-2.0
"""The torch tests' framework: @test functions, then main(). A test that raises
Skip is skipped; any other exception is a failure."""
import ctypes
import os
import pathlib
import subprocess
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MEMSIM = pathlib.Path(os.environ.get("MEMSIM_BUILD", ROOT / "build")) / \
    "bin/memsim"
_TESTS = []


class Skip(Exception):
    pass


def test(function):
    _TESTS.append(function)
    return function


def memsim(*words):
    """What memsim prints, called with WORDS, which must succeed."""
    done = subprocess.run([MEMSIM, *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def equal(got, want):
    if got != want:
        raise AssertionError(f"{got!r}, not {want!r}")


def _need_carried():
    if not ctypes.CDLL(None).memsim_carries():
        raise Skip("built with COMPUTE=0: no kernel is carried out")


def main(carried=False):
    """CARRIED: the tests are of kernels that are carried out."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    wanted = sys.argv[1:]
    for function in _TESTS:
        name = function.__name__
        if wanted and name not in wanted:
            continue
        try:
            if carried:
                _need_carried()
            function()
            counts["passed"] += 1
        except Skip as why:
            counts["skipped"] += 1
            print(f"SKIP {name}: {why}", flush=True)
        except Exception:
            counts["failed"] += 1
            print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    sys.exit(1 if counts["failed"] else 0)
