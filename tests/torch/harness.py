# SPDX-License-Identifier: Apache-2.0
"""The torch tests' framework: @test functions, then main(). A test that raises
Skip is skipped; any other exception is a failure. One with @waits is a process of
its own beside the others: it does little but wait, as for memsim's 30 seconds
before it says that something does not come."""
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MEMSIM = pathlib.Path(os.environ.get("MEMSIM_BUILD", ROOT / "build")) / \
    "bin/memsim"
_TESTS = []
_WAITS = set()


class Skip(Exception):
    pass


def test(function):
    _TESTS.append(function)
    return function


def waits(function):
    _WAITS.add(function)
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


def _run(function, carried):
    """Runs one test; returns what became of it."""
    name = function.__name__
    try:
        if carried:
            _need_carried()
        function()
        return "passed"
    except Skip as why:
        print(f"SKIP {name}: {why}", flush=True)
        return "skipped"
    except Exception:
        print(f"FAIL {name}\n{traceback.format_exc()}", flush=True)
        return "failed"


def _start(function):
    return subprocess.Popen([sys.executable, sys.argv[0], function.__name__],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def _end(process):
    """What became of the test that PROCESS runs, by its last line; prints what
    else it said."""
    told, _, last = process.communicate()[0].rstrip().rpartition("\n")
    found = re.search(r"\b1 (passed|failed|skipped)", last)
    print(told if found else f"{told}\n{last}", end="\n" if told else "",
          flush=True)
    return found[1] if found else "failed"


def _run_all(wanted, carried):
    """Runs the tests WANTED, all if there are none; yields what became of each."""
    beside = [] if wanted else \
        [_start(each) for each in _TESTS if each in _WAITS]
    for each in _TESTS:
        if each.__name__ in wanted or not wanted and each not in _WAITS:
            yield _run(each, carried)
    yield from map(_end, beside)


def main(carried=False):
    """CARRIED: the tests are of kernels that are carried out."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for became in _run_all(sys.argv[1:], carried):
        counts[became] += 1
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    sys.exit(1 if counts["failed"] else 0)
